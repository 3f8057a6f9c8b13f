import pytest

from streamfrom.sqlparse_ext.errors import Unsupported
from tests.proxy.merge.answers import texts


def test_a_limit_must_be_a_number():
    with pytest.raises(Unsupported, match="this form of LIMIT"):
        texts("SELECT a FROM t LIMIT 1.5")
