/** A host that commits many files, to be killed over it: `node doomed-committer.ts SOCKET DATA WORKSPACE`. */
import { createDockerBackend } from "../../../src/sandbox/docker/backend.ts"
import { prepareFor } from "../../support/sealed.ts"
import { profileOf } from "./support.ts"

const [socket, data, workspace] = process.argv.slice(2) as [string, string, string]
const home = `${data}-home`
const backend = createDockerBackend({ data, engine: `unix://${socket}`, rootfs: "host", pool: { perProfile: 1 } })
const profile = profileOf({ home: { dir: home, keep: ["**"] }, limits: { wallMs: 60_000 } })
const prepared = await prepareFor(backend, profile)
if (!prepared.ok) throw new Error(prepared.message)
const write = "for my $d (@ARGV) { for (1 .. 2000) { open(my $f, '>', \"$d/$_\") or die; print $f 'new' } }"
const where = process.argv[5] === "home" ? "/home/tool" : "/workspace"
const exited = await prepared.run({ argv: ["/usr/bin/perl", "-e", write, where], workspace })
if (!exited.ok) throw new Error(exited.message)
await exited.keepHome()
await exited.commit()
