/** Other protocols and other SOCKS commands. */
import { connect, latin, one, socksName, type EgressCase } from "./case.ts"

export const rawTcp: readonly EgressCase[] = [
  one(98, "any protocol on a tcp:// entry", connect("db.good.test:5432"), "allowed", {
    inside: "\0\0\0\x08\x04\xd2\x16/",
  }),
  one(98, "a tcp:// entry by SOCKS5", socksName("db.good.test", 5432), "allowed", {
    inside: "\0\0\0\x08\x04\xd2\x16/",
  }),
  one(98, "another port of a tcp:// host", connect("db.good.test:5433"), "port_not_allowed"),
  one(101, "UDP through SOCKS5", socksName("api.good.test", 443, 3), "command_not_allowed"),
  one(
    101,
    "UDP through SOCKS5, as clients ask for it",
    latin(Buffer.from([5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0])),
    "command_not_allowed",
  ),
  one(101, "BIND through SOCKS5", socksName("api.good.test", 443, 2), "command_not_allowed"),
  one(101, "SOCKS5 with authentication only", "\x05\x01\x02", "bad_socks"),
  one(101, "SOCKS4", "\x04\x01\x01\xbb\x5d\xb8\xd8\x22\0", "bad_socks"),
]
