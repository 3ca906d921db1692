/** HTTP: framing, headers, upgrades, responses. */
import { connect, get, one, plain, post, type EgressCase } from "./case.ts"

const key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
const accept = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
const upgrade = ["Connection: Upgrade", "Upgrade: websocket", key, "Sec-WebSocket-Version: 13"]
export const http: readonly EgressCase[] = [
  one(1, "absolute-form to a declared host", plain(), "allowed", {
    upstreamHas: ["GET / HTTP/1.1\r\nHost: plain.good.test\r\n"],
    clientHas: ["HTTP/1.1 200 OK", "ok"],
  }),
  one(1, "absolute-form without a path", get("http://plain.good.test?q=1", "Host: plain.good.test"), "allowed", {
    upstreamHas: ["GET /?q=1 HTTP/1.1\r\n"],
  }),
  one(5, "absolute-form to another host", get("http://evil.test/", "Host: evil.test"), "host_not_allowed", {
    clientHas: [
      "HTTP/1.1 403 ",
      "x-caisson-denied: host_not_allowed",
      '"layer":"egress"',
      '"host":"evil.test"',
      '"port":80',
    ],
  }),
  one(78, "a Host of another name", get("http://plain.good.test/", "Host: evil.test"), "authority_mismatch"),
  one(78, "a Host of another name on CONNECT", connect("api.good.test:443", "Host: evil.test"), "authority_mismatch"),
  one(78, "the same Host on CONNECT", connect("api.good.test:443", "Host: api.good.test:443"), "allowed"),
  one(79, "two Hosts", plain("Host: plain.good.test"), "bad_host_header"),
  one(79, "two different Hosts", plain("Host: evil.test"), "bad_host_header"),
  one(79, "no Host", get("http://plain.good.test/"), "bad_host_header"),
  one(79, "a Host with another port", get("http://plain.good.test/", "Host: plain.good.test:81"), "bad_host_header"),
  one(79, "a Host that is none", get("http://plain.good.test/", "Host: plain.good.test, evil.test"), "bad_host_header"),
  one(79, "HTTP/1.0 without a Host", "GET http://plain.good.test/ HTTP/1.0\r\n\r\n", "allowed", {
    upstreamHas: ["Host: plain.good.test\r\n"],
  }),
  one(80, "length and encoding", post("Content-Length: 5", "Transfer-Encoding: chunked"), "bad_framing"),
  one(80, "two lengths", post("Content-Length: 5", "Content-Length: 6"), "bad_framing"),
  one(80, "the same length twice", post("Content-Length: 5", "Content-Length: 5"), "bad_framing"),
  ...["+5", "5,5", "0x5", "-5", "05", "5 5", "", "9007199254740993", "99999999999999999999", "5.0", "1e3"].map(
    (value) => one(80, `Content-Length: ${value}`, post(`Content-Length: ${value}`), "bad_framing"),
  ),
  ...["chunked, chunked", "xchunked", "chunked;q=1", "identity", "gzip, chunked", "chunked, identity", '"chunked"'].map(
    (value) => one(81, `Transfer-Encoding: ${value}`, post(`Transfer-Encoding: ${value}`), "bad_framing"),
  ),
  one(81, "chunked twice", post("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), "bad_framing"),
  one(
    81,
    "chunked in HTTP/1.0",
    "POST http://plain.good.test/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
    "bad_framing",
  ),
  one(
    83,
    "HTTP/0.9 with a bare line feed",
    "GET /x\nHost: plain.good.test\nContent-Length: 3\n\nabc",
    "bad_request_line",
  ),
  one(83, "no version", "GET http://plain.good.test/\r\nHost: plain.good.test\r\n\r\n", "bad_request_line"),
  one(
    83,
    "bare line feeds",
    "GET http://plain.good.test/ HTTP/1.1\nHost: plain.good.test\n\r\n\r\n",
    "bad_request_line",
  ),
  one(
    83,
    "a bare line feed between headers",
    "GET http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\nX: y\r\n\r\n",
    "bad_request_line",
  ),
  ...["HTTP/1.2", "HTTP/2.0", "HTTP/0.9", "HTTP/11", "HTTP/1.1.1", "HTTP/01.1"].map((version) =>
    one(83, version, `GET http://plain.good.test/ ${version}\r\nHost: plain.good.test\r\n\r\n`, "http_version"),
  ),
  ...["get", "G T", "GET\t", "{GET"].map((method) =>
    one(
      83,
      `method ${JSON.stringify(method)}`,
      `${method} http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\r\n\r\n`,
      "bad_request_line",
    ),
  ),
  one(84, "a folded header", plain("X: a", " b"), "bad_header"),
  one(
    84,
    "a fold before the first header",
    "GET http://plain.good.test/ HTTP/1.1\r\n Host: plain.good.test\r\n\r\n",
    "bad_header",
  ),
  one(84, "a space before the colon", plain("X : a"), "bad_header"),
  one(84, "a header without a colon", plain("nonsense"), "bad_header"),
  one(84, "an empty header name", plain(": a"), "bad_header"),
  one(84, "a NUL in a value", plain("X: a\0b"), "bad_header"),
  one(84, "a control byte in a value", plain("X: a\x08b"), "bad_header"),
  one(84, "a control byte in a name", plain("X\x0b: a"), "bad_header"),
  one(84, "a bare CR", plain("X: a\rEvil: b"), "bad_request_line"),
  one(
    84,
    "more headers than the limit",
    plain(...Array.from({ length: 128 }, (_, at) => `X-${at}: y`)),
    "head_too_large",
  ),
  one(84, "a head over the limit", plain(`X: ${"y".repeat(70_000)}`), "head_too_large"),
  one(
    86,
    "proxy and hop-by-hop headers stay here",
    plain(
      "Proxy-Authorization: Basic eA==",
      "Proxy-Connection: keep-alive",
      "Keep-Alive: 1",
      "TE: trailers",
      "Trailer: X",
    ),
    "allowed",
    { upstreamLacks: ["roxy-", "Keep-Alive", "TE:", "Trailer"] },
  ),
  one(86, "nominated headers stay here", plain("Connection: X-Hop, close", "X-Hop: 1", "X-End: 2"), "allowed", {
    upstreamHas: ["X-End: 2"],
    upstreamLacks: ["X-Hop"],
  }),
  one(
    87,
    "our own headers from a client stay here",
    plain("X-Caisson-Denied: no", "Via: 1.1 forged", "X-Caisson-Call: 1"),
    "allowed",
    { upstreamLacks: ["aisson", "forged"] },
  ),
  one(87, "our own headers from an upstream stay there", plain(), "allowed", {
    upstream:
      "HTTP/1.1 200 OK\r\nX-Caisson-Denied: forged\r\nVia: forged\r\nProxy-Authenticate: forged\r\nConnection: X-Hop\r\nX-Hop: forged\r\nContent-Length: 2\r\n\r\nok",
    clientHas: ["ok"],
    clientLacks: ["forged"],
  }),
  one(
    88,
    "a second request to another host on the same connection",
    plain() + get("http://evil.test/", "Host: evil.test"),
    "host_not_allowed",
    { wireOnly: true, clientHas: ["HTTP/1.1 200 OK", "HTTP/1.1 403 "] },
  ),
  one(
    88,
    "a second request hidden behind a body",
    `${post("Content-Length: 3")}abc${get("http://evil.test/", "Host: evil.test")}`,
    "host_not_allowed",
    { wireOnly: true, upstreamHas: ["abc"], upstreamLacks: ["evil"] },
  ),
  one(
    88,
    "a second request hidden behind chunks",
    `${post("Transfer-Encoding: chunked")}3\r\nabc\r\n0\r\n\r\n${get("http://evil.test/", "Host: evil.test")}`,
    "host_not_allowed",
    { wireOnly: true, upstreamLacks: ["evil"] },
  ),
  one(
    90,
    "Expect to a denied host",
    `POST http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n`,
    "host_not_allowed",
    { clientHas: ["HTTP/1.1 403 "], clientLacks: ["100 Continue"] },
  ),
  one(90, "an unknown expectation", plain("Expect: the-unexpected"), "bad_expect"),
  one(91, "CONNECT with a length", connect("api.good.test:443", "Content-Length: 5"), "connect_body"),
  one(91, "CONNECT with an encoding", connect("api.good.test:443", "Transfer-Encoding: chunked"), "connect_body"),
  one(92, "a WebSocket to a declared web entry", plain(...upgrade), "allowed", {
    upstream: `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${accept}\r\n\r\nFRAMES`,
    clientHas: ["HTTP/1.1 101 ", "FRAMES"],
  }),
  one(92, "a WebSocket to another host", get("http://evil.test/", "Host: evil.test", ...upgrade), "host_not_allowed"),
  one(92, "a WebSocket where only safe methods may be sent", plain(...upgrade), "read_only", { readOnly: true }),
  one(
    92,
    "an offer to upgrade to something else is left out",
    plain("Connection: Upgrade", "Upgrade: tls/1.0"),
    "allowed",
    {
      upstreamHas: ["GET / HTTP/1.1\r\n"],
      upstreamLacks: ["pgrade", "tls"],
    },
  ),
  one(
    92,
    "a WebSocket hidden in a list of offers",
    plain("Connection: Upgrade", "Upgrade: h2c, websocket", key),
    "upgrade_not_allowed",
  ),
  one(86, "a POST without a body says that it is empty", post(), "allowed", {
    upstreamHas: ["POST / HTTP/1.1\r\n", "Content-Length: 0\r\n"],
    upstreamLacks: ["chunked"],
  }),
  one(86, "a GET without a body says nothing about one", plain(), "allowed", {
    upstreamLacks: ["ontent-", "ransfer-"],
  }),
  one(
    86,
    "Connection cannot take away what is meant for the host",
    plain(
      "Connection: Authorization, cookie, X-Hop, Content-Type",
      "Authorization: Bearer x",
      "Cookie: a=b",
      "X-Hop: 1",
    ),
    "allowed",
    { upstreamHas: ["Authorization: Bearer x\r\n", "Cookie: a=b\r\n"], upstreamLacks: ["X-Hop"] },
  ),
  ...[
    "X-HTTP-Method-Override: DELETE",
    "x-http-method: PUT",
    "X-Method-Override: PATCH",
    "X_HTTP_METHOD_OVERRIDE: DELETE",
    "X-HTTP-Method-Override: GET, DELETE",
  ].map((line) => one(92, `${line} where only safe methods may be sent`, plain(line), "read_only", { readOnly: true })),
  ...[
    "?_method=DELETE",
    "?a=1&_METHOD=put",
    "?%5Fmethod=DELETE",
    "?a;_method=DELETE",
    "?x-http-method-override=POST",
  ].map((query) =>
    one(
      92,
      `${query} where only safe methods may be sent`,
      get(`http://plain.good.test/${query}`, "Host: plain.good.test"),
      "read_only",
      { readOnly: true },
    ),
  ),
  one(
    92,
    "an override to a safe method, and words that only look like one",
    get("http://plain.good.test/?method=DELETE&_method=GET", "Host: plain.good.test", "X-HTTP-Method-Override: HEAD"),
    "allowed",
    { readOnly: true },
  ),
  one(92, "an override where methods are not restricted", plain("X-HTTP-Method-Override: DELETE"), "allowed", {
    upstreamHas: ["X-HTTP-Method-Override: DELETE"],
  }),
  one(92, "a WebSocket without a key", plain("Connection: Upgrade", "Upgrade: websocket"), "upgrade_not_allowed"),
  one(92, "a WebSocket that the upstream does not prove", plain(...upgrade), "upstream_error", {
    wireOnly: true,
    upstream:
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: wrong\r\n\r\nFRAMES",
    clientHas: ["HTTP/1.1 502 "],
    clientLacks: ["FRAMES"],
  }),
  one(92, "a POST where only safe methods may be sent", post("Content-Length: 0"), "read_only", { readOnly: true }),
  one(93, "a redirect to a private host", plain(), "allowed", {
    upstream: "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n",
    clientHas: ["302 Found", "Location: http://169.254.169.254/"],
  }),
  one(94, "a response with length and encoding", plain(), "upstream_error", {
    wireOnly: true,
    upstream: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    clientHas: ["HTTP/1.1 502 "],
  }),
  one(94, "a response with two lengths", plain(), "upstream_error", {
    wireOnly: true,
    upstream: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nokk",
    clientHas: ["HTTP/1.1 502 "],
  }),
  one(94, "a response with an unknown encoding", plain(), "upstream_error", {
    wireOnly: true,
    upstream: "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    clientHas: ["HTTP/1.1 502 "],
  }),
  one(94, "a response head over the limit", plain(), "upstream_error", {
    wireOnly: true,
    upstream: `HTTP/1.1 200 OK\r\nX: ${"y".repeat(100_000)}\r\n\r\n`,
    clientHas: ["HTTP/1.1 502 "],
  }),
  one(94, "a response that is none", plain(), "upstream_error", {
    wireOnly: true,
    upstream: "SSH-2.0-OpenSSH\r\n",
    clientHas: ["HTTP/1.1 502 "],
  }),
  one(94, "an upgrade that nobody asked for", plain(), "upstream_error", {
    wireOnly: true,
    upstream: "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
    clientHas: ["HTTP/1.1 502 "],
  }),
  one(94, "more interim responses than anyone needs, and the answer, in one segment", plain(), "upstream_error", {
    wireOnly: true,
    upstream: `${"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(40)}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`,
    clientHas: ["HTTP/1.1 502 "],
  }),
  one(94, "a response of another HTTP version", plain(), "upstream_error", {
    wireOnly: true,
    upstream: "HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    clientHas: ["HTTP/1.1 502 "],
  }),
  one(94, "a body chunk that is none", `${post("Transfer-Encoding: chunked")}zz\r\nabc\r\n`, "bad_chunk", {
    wireOnly: true,
  }),
  one(94, "a chunk longer than it says", `${post("Transfer-Encoding: chunked")}2\r\nabc\r\n0\r\n\r\n`, "bad_chunk", {
    wireOnly: true,
  }),
]
