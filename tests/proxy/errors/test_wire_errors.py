from streamfrom.proxy.errors.wire_errors import LocalDataDisabled, PacketTooLarge, WireError


def test_sentences_are_those_of_mysql_and_disabled_local_data_has_the_code_of_the_server_at_hand():
    assert str(WireError("no end")) == "Malformed communication packet: no end"
    assert str(PacketTooLarge()) == "Got a packet bigger than 'max_allowed_packet' bytes"
    mysql, mariadb = LocalDataDisabled(on_mariadb=False), LocalDataDisabled(on_mariadb=True)
    assert mysql.wire_code() == (3948, "42000")
    assert str(mysql).endswith("this must be enabled on both the client and server sides")
    assert mariadb.wire_code() == (4166, "HY000")
    assert str(mariadb).endswith(
        "MariaDB server or client has disabled the local infile capability"
    )
