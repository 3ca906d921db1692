"""
Asks a host many times over one connection, and says how many times a second: SCHEME TIMES [ADDRESS:PORT]. With an address
directly there; else by the proxy of the environment, as programs do that know one.
"""
import http.client, json, os, ssl, sys, time
from urllib.parse import urlsplit

scheme, times = sys.argv[1], int(sys.argv[2])
host = "secure.bench" if scheme == "https" else "plain.bench"
address = sys.argv[3].split(":") if len(sys.argv) > 3 else None
proxy = urlsplit(os.environ.get("HTTP_PROXY", ""))
where, port = (address[0], int(address[1])) if address else (proxy.hostname, proxy.port)
path = "/" if address or scheme == "https" else f"http://{host}/"
if scheme == "https":
    connection = http.client.HTTPSConnection(where, port, context=ssl._create_unverified_context())
    if not address:
        connection.set_tunnel(host, 443)
else:
    connection = http.client.HTTPConnection(where, port)


def ask():
    connection.request("GET", path, headers={"host": host})
    answer = connection.getresponse()
    if answer.status != 200 or len(answer.read()) != 1024:
        raise SystemExit(f"it answered {answer.status}")


for _ in range(50):
    ask()
began = time.perf_counter()
for _ in range(times):
    ask()
print(json.dumps({"perSecond": times / (time.perf_counter() - began)}))
