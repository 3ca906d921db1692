/** Targets: user information, ports, schemes, forms. */
import { connects, get, one, plain, utf8, type EgressCase } from "./case.ts"

export const forms: readonly EgressCase[] = [
  ...connects(
    22,
    "user information",
    ["api.good.test@evil.test:443", "a:b@api.good.test:443", "@api.good.test:443"],
    "userinfo",
  ),
  one(
    23,
    "user information in absolute-form",
    get("http://api.good.test:443@evil.test/", "Host: evil.test"),
    "userinfo",
  ),
  ...connects(25, "a port that is not declared", ["api.good.test:22"], "port_not_allowed"),
  ...connects(26, "port 80 of a 443 entry", ["api.good.test:80"], "port_not_allowed"),
  ...connects(27, "no port", ["api.good.test"], "port_required"),
  ...connects(28, "an empty or named port", ["api.good.test:", "api.good.test:https"], "bad_port"),
  ...connects(28, "no host", [":443"], "bad_authority"),
  ...connects(
    29,
    "an odd port",
    [
      "api.good.test:0",
      "api.good.test:65536",
      "api.good.test:-1",
      "api.good.test:0443",
      "api.good.test:443:80",
      "api.good.test:1e2",
      "api.good.test:+443",
      "api.good.test:0x1bb",
    ],
    "bad_port",
  ),
  one(29, "a space after the port", "CONNECT api.good.test:443  HTTP/1.1\r\n\r\n", "bad_request_line"),
  ...connects(29, "full-width digits", [utf8("api.good.test:４４３")], "non_ascii"),
  ...connects(30, "more than host:port", ["api.good.test:443/path", "http://api.good.test:443/"], "bad_port"),
  one(31, "https in absolute-form", get("https://api.good.test/", "Host: api.good.test"), "scheme"),
  ...[
    "ftp://plain.good.test/",
    "file:///etc/passwd",
    "gopher://plain.good.test/",
    "ws://plain.good.test/",
    "javascript:alert(1)",
  ].map((url) => one(32, url, get(url, "Host: plain.good.test"), "scheme")),
  one(32, "a scheme without an authority", get("http:plain.good.test/", "Host: plain.good.test"), "bad_target"),
  one(32, "a fragment", get("http://plain.good.test/#x", "Host: plain.good.test"), "bad_target"),
  one(33, "origin-form", get("/", "Host: plain.good.test"), "not_a_proxy_request", {
    clientLacks: ["good.test:443", "127.0.0.1"],
  }),
  one(33, "no form at all", get("plain.good.test", "Host: plain.good.test"), "bad_target"),
  one(34, "OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: plain.good.test\r\n\r\n", "method_not_allowed", {
    clientHas: ["HTTP/1.1 405 "],
  }),
  ...["TRACE", "TRACK"].map((method) =>
    one(
      34,
      method,
      `${method} http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\r\n\r\n`,
      "method_not_allowed",
      { clientHas: ["HTTP/1.1 405 "] },
    ),
  ),
  one(35, "the HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "http_version"),
  one(
    35,
    "an offer of h2c, as curl --http2 and Java make it, is left out and the request passes",
    plain("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"),
    "allowed",
    { upstreamHas: ["GET / HTTP/1.1\r\n"], upstreamLacks: ["h2c", "pgrade", "HTTP2"], clientHas: ["200 OK"] },
  ),
  one(
    35,
    "an offer of h2c to a host that is not declared",
    get("http://evil.test/", "Host: evil.test", "Connection: Upgrade", "Upgrade: h2c"),
    "host_not_allowed",
  ),
  one(
    35,
    "plain HTTP to a port declared for TLS",
    get("http://api.good.test:443/", "Host: api.good.test:443"),
    "protocol_mismatch",
  ),
]
