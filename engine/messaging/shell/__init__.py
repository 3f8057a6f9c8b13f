"""The thin shell: finds the tables, runs their schedulers, purges, and carries out decisions."""
