/** Sockets of every family, and the host's own listeners. */
import { once } from "node:events"
import { chmodSync } from "node:fs"
import { createServer } from "node:net"
import type { EscapeCase } from "../escape-case.ts"
import { quoted } from "../programs.ts"

const family = (
  name: string,
  number: number,
  types: readonly number[],
  protocols: readonly number[] = [0],
): EscapeCase => ({
  name: `no ${name} socket can be made`,
  language: "python",
  source: `
for kind in ${JSON.stringify(types)}:
    for protocol in ${JSON.stringify(protocols)}:
        must_fail("socket(${number}, %d, %d)" % (kind, protocol), lambda: socket.socket(${number}, kind, protocol))`,
})

export const sockets: readonly EscapeCase[] = [
  family("packet (AF_PACKET)", 17, [2, 3], [0, 0x0300]),
  family("hypervisor (AF_VSOCK)", 40, [1, 2]),
  family("kernel crypto (AF_ALG)", 38, [5]),
  family("Bluetooth (AF_BLUETOOTH)", 31, [1, 2, 3, 5], [0, 1, 2, 3]),
  family("express data path (AF_XDP)", 44, [3]),
  family("CAN bus (AF_CAN)", 29, [2, 3], [0, 1, 2]),
  family("TIPC, RDS, SMC, QIPCRTR, KCM or other rare", 30, [1, 2, 5]),
  family("PF_KEY, LLC, PPPoX, phonet or NFC", 15, [3], [2]),
  {
    name: "no address family but the four that tools need can be opened",
    language: "python",
    source: `
for number in range(0, 64):
    if number in (1, 2, 10, 16): continue
    for kind in (1, 2, 3, 5):
        must_fail("family %d type %d" % (number, kind), lambda: socket.socket(number, kind, 0))`,
  },
  {
    name: "raw IPv4 and IPv6 sockets are refused",
    language: "python",
    source: `
for family in (socket.AF_INET, socket.AF_INET6):
    for protocol in (1, 6, 17, 58, 255):
        must_fail("raw %d" % protocol, lambda: socket.socket(family, socket.SOCK_RAW, protocol))`,
  },
  {
    name: "SCTP, DCCP and UDP-Lite, which load kernel modules, are refused",
    language: "python",
    source: `
for family in (socket.AF_INET, socket.AF_INET6):
    for kind, protocol in ((1, 132), (5, 132), (6, 33), (2, 136), (5, 0), (6, 0), (4, 0)):
        must_fail("protocol %d" % protocol, lambda: socket.socket(family, kind, protocol))`,
  },
  {
    name: "netlink beyond routing (audit, netfilter, uevent, generic, crypto) is refused",
    language: "python",
    source: `
for protocol in range(1, 23):
    must_fail("netlink %d" % protocol, lambda: socket.socket(16, 3, protocol))`,
  },
  {
    name: "route netlink changes neither an address nor a route",
    language: "python",
    source: `
def ask(kind, body):
    s = socket.socket(16, 3, 0)
    s.send(struct.pack("=IHHII", 16 + len(body), kind, 0x405, 1, 0) + body)
    answer = s.recv(4096)
    code = struct.unpack("=i", answer[16:20])[0]
    if code < 0: raise OSError(-code, os.strerror(-code))
    return code
must_fail("adding a route", lambda: ask(24, struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 3, 0, 1, 0) + struct.pack("=HHI", 8, 4, 1)))
must_fail("adding an address", lambda: ask(20, struct.pack("=BBBBI", 2, 8, 0, 0, 1) + struct.pack("=HH4s", 8, 2, bytes([10, 9, 8, 7]))))
must_fail("adding a link", lambda: ask(16, struct.pack("=BBHiII", 0, 0, 0, 0, 0, 0)))`,
  },
  {
    name: "pairs of sockets other than Unix ones are refused",
    language: "python",
    source: `
for number in (2, 10, 16, 30, 40): must_fail("socketpair %d" % number, lambda: socket.socketpair(number, 1, 0))`,
  },
  {
    name: "the host's TCP listener on loopback is not reached",
    language: "python",
    source: ({ ground }) => `
for address in ("127.0.0.1", "127.1.2.3", "0.0.0.0", "localhost"):
    must_fail("dialling " + address, lambda: dial(address, ${ground.tcpPort}))`,
  },
  {
    name: "the host's IPv6 listener on loopback is not reached",
    language: "python",
    source: ({ ground }) => `
for address in ("::1", "::", "::ffff:127.0.0.1"):
    must_fail("dialling " + address, lambda: dial(address, ${ground.tcp6Port || ground.tcpPort}, socket.AF_INET6))`,
  },
  {
    name: "the host's UDP socket hears nothing",
    language: "python",
    source: ({ ground }) => `
for address in ("127.0.0.1", "0.0.0.0"): may_fail(lambda: dial(address, ${ground.udpPort}, socket.AF_INET, socket.SOCK_DGRAM))
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
may_fail(lambda: s.sendto(b"x", ("255.255.255.255", ${ground.udpPort})))`,
  },
  {
    name: "an abstract Unix socket of the host is not reached",
    language: "python",
    source: ({ ground }) => `
s = socket.socket(socket.AF_UNIX)
must_fail("the abstract socket", lambda: s.connect(b"\\0" + ${quoted(ground.abstractName)}.encode()))`,
  },
  {
    name: "an agent's socket of the host, by its path, is not there",
    language: "python",
    source: ({ ground }) => `
for path in (${quoted(ground.socketPath)}, "/proc/1/root" + ${quoted(ground.socketPath)}, "/proc/1/cwd" + ${quoted(ground.socketPath)}):
    must_fail(path, lambda: socket.socket(socket.AF_UNIX).connect(path))`,
  },
  {
    name: "docker, containerd, podman, D-Bus, systemd, X11, Wayland, snapd and agent sockets are not there",
    language: "python",
    source: `
paths = ["/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock", "/run/crio/crio.sock",
  "/run/dbus/system_bus_socket", "/run/systemd/private", "/run/systemd/journal/socket", "/run/systemd/notify", "/dev/log", "/run/snapd.socket",
  "/run/user/0/bus", "/run/user/1000/bus", "/run/user/1000/wayland-0", "/tmp/.X11-unix/X0", "/run/nscd/socket", "/run/user/1000/gnupg/S.gpg-agent",
  "/run/user/1000/keyring/ssh", "/var/run/mysqld/mysqld.sock", "/var/run/postgresql/.s.PGSQL.5432", "/run/udev/control"]
for path in paths:
    if os.path.lexists(path): breach(path + " is there")
    must_fail(path, lambda: socket.socket(socket.AF_UNIX).connect(path))
for name in (b"\\0/tmp/.X11-unix/X0", b"\\0/tmp/dbus-x", b"\\0/org/kernel/udev/udevd", b"\\0/containerd-shim/x.sock"):
    must_fail(repr(name), lambda: socket.socket(socket.AF_UNIX).connect(name))`,
  },
  {
    name: "a listening socket of the host that lies in the workspace does not answer through the layer",
    language: "python",
    source: `must_fail("the socket in the workspace", lambda: socket.socket(socket.AF_UNIX).connect("/workspace/service.sock"))`,
    async prepare({ workspace, ground }) {
      const server = createServer((socket) => socket.on("error", () => undefined).end(ground.token)).listen(
        `${workspace}/service.sock`,
      )
      await once(server, "listening")
      chmodSync(`${workspace}/service.sock`, 0o777)
      server.unref()
    },
  },
]
