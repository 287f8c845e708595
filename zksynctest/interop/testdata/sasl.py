# Authenticates by DIGEST-MD5, creates a znode for its identity alone, and reads it:
# sasl.py SERVERS USER PASSWORD PATH. Prints the data, or the name of an exception.
import sys

from kazoo.client import KazooClient
from kazoo.security import make_acl

servers, user, password, path = sys.argv[1:]
client = KazooClient(servers, sasl_options={"mechanism": "DIGEST-MD5", "username": user, "password": password})
try:
    client.start(timeout=20)
    client.create(path, b"kazoo", acl=[make_acl("sasl", user, all=True)])
    data, _ = client.get(path)
    print(data.decode())
    client.stop()
except Exception as err:
    print(type(err).__name__)
