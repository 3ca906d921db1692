/** The first flight inside a tunnel. */
import { alpn, extension, fragmented, handshakeMessage, hello, serverName } from "../../egress-proxy/tls/hello-bytes.ts"
import { connect, get, helloFor, latin, one, socksName, type EgressCase } from "./case.ts"

const api = connect("api.good.test:443")
const grease = extension(0x2a2a, Buffer.alloc(1))
export const tls: readonly EgressCase[] = [
  one(67, "SNI equals the tunnel's host", api, "allowed", { inside: helloFor("api.good.test") }),
  one(67, "SNI in upper case", api, "allowed", { inside: helloFor("API.good.test") }),
  one(67, "a hello over many records, with GREASE", api, "allowed", {
    inside: latin(fragmented(handshakeMessage({ extensions: [grease, serverName("api.good.test")] }), 7)),
  }),
  one(67, "the hello sent along with CONNECT", api + helloFor("api.good.test"), "allowed"),
  one(68, "SNI of another host", api, "sni_mismatch", { inside: helloFor("evil.test") }),
  one(68, "SNI of another declared host", api, "sni_mismatch", { inside: helloFor("x.cdn.good.test") }),
  one(68, "SNI of another host, sent along with CONNECT", api + helloFor("evil.test"), "sni_mismatch"),
  one(68, "SNI of another host through SOCKS5", socksName("api.good.test", 443), "sni_mismatch", {
    inside: helloFor("evil.test"),
  }),
  one(69, "no SNI", api, "sni_missing", { inside: latin(hello({ extensions: [alpn("h2")] })) }),
  one(69, "an address as SNI", api, "sni_missing", { inside: helloFor("93.184.216.34") }),
  one(69, "two server names", api, "bad_client_hello", { inside: helloFor("api.good.test", "evil.test") }),
  one(71, "an encrypted hello whose outer name is another", api, "sni_mismatch", {
    inside: latin(hello({ extensions: [serverName("cover.evil.test"), extension(0xfe0d, Buffer.alloc(40))] })),
  }),
  one(73, "SSH on an https entry", api, "protocol_mismatch", { inside: "SSH-2.0-OpenSSH_9.2\r\n" }),
  one(73, "HTTP on an https entry", api, "protocol_mismatch", {
    inside: "GET / HTTP/1.1\r\nHost: api.good.test\r\n\r\n",
  }),
  one(73, "SMTP on an https entry", api, "protocol_mismatch", { inside: "EHLO evil.test\r\n" }),
  one(73, "SSH on a plain web entry", connect("plain.good.test:80"), "protocol_mismatch", {
    inside: "SSH-2.0-OpenSSH_9.2\r\n",
  }),
  one(76, "another Host inside a tunnel", connect("plain.good.test:80"), "authority_mismatch", {
    inside: get("/", "Host: evil.test"),
  }),
  one(76, "absolute-form inside a tunnel", connect("plain.good.test:80"), "bad_target", {
    inside: get("http://evil.test/", "Host: plain.good.test"),
  }),
  one(76, "CONNECT inside a tunnel", connect("plain.good.test:80"), "method_not_allowed", {
    inside: connect("evil.test:443"),
  }),
  one(76, "HTTP inside a tunnel to a plain entry", connect("plain.good.test:80"), "allowed", {
    inside: get("/x", "Host: plain.good.test"),
    upstreamHas: ["GET /x HTTP/1.1\r\nHost: plain.good.test\r\n"],
  }),
]
