/** What names resolve to. */
import { connect, connects, one, plain, publicAddress, socksName, type EgressCase } from "./case.ts"

export const answers: readonly EgressCase[] = [
  one(54, "a name that resolves to loopback", connect("api.good.test:443"), "resolved_loopback", {
    answer: ["127.0.0.1"],
  }),
  one(54, "a name that resolves to metadata", connect("api.good.test:443"), "resolved_metadata", {
    answer: ["169.254.169.254"],
  }),
  one(54, "a name that resolves to an embedded address", connect("api.good.test:443"), "resolved_embedded_v4", {
    answer: ["64:ff9b::7f00:1"],
  }),
  one(54, "a name that resolves to a private address, over HTTP", plain(), "resolved_private", {
    answer: ["10.1.2.3"],
  }),
  one(
    54,
    "a name that resolves to a private address, over SOCKS5",
    socksName("db.good.test", 5432),
    "resolved_private",
    { answer: ["10.1.2.3"] },
  ),
  one(55, "a public and a private address", connect("api.good.test:443"), "mixed_answer", {
    answer: [publicAddress, "10.0.0.1"],
  }),
  one(55, "a public and a loopback address", connect("api.good.test:443"), "mixed_answer", {
    answer: [publicAddress, "::1"],
  }),
  one(60, "a resolver that fails", connect("api.good.test:443"), "dns_failure", { answer: "fails" }),
  one(60, "an empty answer", connect("api.good.test:443"), "dns_failure", { answer: [] }),
  one(60, "an answer that is no address", connect("api.good.test:443"), "dns_failure", { answer: ["localhost"] }),
  one(60, "an answer with a zone", connect("api.good.test:443"), "dns_failure", { answer: ["fe80::1%eth0"] }),
  ...connects(61, "a denied name with data in its labels", ["c2VjcmV0.evil.test:443"], "host_not_allowed"),
  ...connects(
    66,
    "names of this machine and its network",
    [
      "localhost:443",
      "x.localhost:443",
      "printer.local:443",
      "db.internal:443",
      "host.docker.internal:443",
      "corpus-host:443",
    ],
    "reserved_name",
  ),
  one(66, "localhost by SOCKS5", socksName("localhost", 443), "reserved_name"),
]
