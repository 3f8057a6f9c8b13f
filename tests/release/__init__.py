"""What a release and its documents are made with: tables from the code, and the bill of materials."""
