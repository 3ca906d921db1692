/**
 * The unit of systemd that operators copy, run by systemd: in a container of its own on this machine's files, which it sees
 * as they are and changes for itself alone.
 */
import { execFileSync, spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "vitest"
import { describeNeeding, noRoot } from "../support/needing.ts"
import { patience } from "../support/patience.ts"

const root = join(import.meta.dirname, "../..")
const missing =
  noRoot ??
  (existsSync("/usr/bin/systemd-nspawn") ? undefined : "no systemd-nspawn here: apt-get install -y systemd-container")

const UNIT = `[Unit]
After=basic.target
SuccessAction=exit-force
FailureAction=exit-force
[Service]
Type=oneshot
ExecStart=/bin/sh /told/guest.sh
StandardOutput=file:/told/log
StandardError=file:/told/log
TimeoutStartSec=150
`
/** As docs/operating.md says, then as an operator does; each answer in a file. */
const GUEST = `set -x
cd /told
useradd --system --no-create-home --shell /usr/sbin/nologin caisson
cp /opt/caisson/deploy/caisson.service /etc/systemd/system/
systemctl daemon-reload
systemctl start caisson
until curl -sf "http://127.0.0.1:7433/healthz?ready" > health; do systemctl is-active caisson || exit 1; sleep 0.2; done
mkdir -p /srv/work && chown caisson: /srv/work && cd /srv/work
as_caisson() { setpriv --reuid=caisson --regid=caisson --clear-groups --inh-caps=-all env HOME=/srv/work CAISSON_DATA=/var/lib/caisson "$@"; }
as_caisson /opt/caisson/bin/caisson.cjs call json.query -i '{"filter": ".a", "document": {"a": 41}}' > /told/call
stat -c '%a %U' /var/lib/caisson/first-token > /told/token-file
curl -s -o /told/tools -w '%{http_code}' -H "Authorization: Bearer $(cat /var/lib/caisson/first-token)" http://127.0.0.1:7433/v1/tools > /told/status
systemctl reload caisson
until journalctl -u caisson --no-pager | grep -q 'read again'; do systemctl is-active caisson || exit 1; sleep 0.2; done
systemctl stop caisson
systemctl show caisson -p Result -p ExecMainStatus -p NRestarts > /told/end
journalctl -u caisson --no-pager > /told/journal
ls /var/lib/caisson > /told/left
`

describeNeeding("the unit of systemd, run", missing, () => {
  it("starts, is ready, serves a sealed call, reads again and ends in good order, and its journal tells no token", {
    timeout: 300_000 * patience,
  }, () => {
    const folder = mkdtempSync(join(tmpdir(), "caisson-service-"))
    const told = (name: string): string => readFileSync(join(folder, "told", name), "utf8")
    try {
      for (const name of ["told", "disk"]) mkdirSync(join(folder, name))
      writeFileSync(join(folder, "told", "guest.sh"), GUEST)
      writeFileSync(join(folder, "guest.service"), UNIT)
      const script = `set -e
mount -t tmpfs tmpfs disk && mkdir disk/upper disk/work disk/root
mount -t overlay overlay -o lowerdir=/,upperdir=$PWD/disk/upper,workdir=$PWD/disk/work disk/root
exec timeout -k 5 240 systemd-nspawn -q --register=no --keep-unit --machine="$2" -D disk/root --private-network \\
  --capability=all --bind-ro="$1":/opt/caisson --bind="$PWD/told":/told \\
  --bind-ro="$PWD/guest.service":/etc/systemd/system/guest.service -b systemd.unit=guest.service`
      const machine = `caisson-unit-${process.pid}`
      const ended = spawnSync("unshare", ["--mount", "sh", "-c", script, "sh", root, machine], {
        cwd: folder,
        // Its own mounts over /proc would keep any sandbox from having one.
        env: { ...process.env, SYSTEMD_NSPAWN_API_VFS_WRITABLE: "1" },
        stdio: ["ignore", "pipe", "pipe"],
        encoding: "utf8",
      })
      rmSync(`/run/systemd/nspawn/propagate/${machine}`, { recursive: true, force: true })
      expect([ended.status, existsSync(join(folder, "told/end")) ? "" : `${ended.stdout}${told("log")}`]).toEqual([
        0,
        "",
      ])
      expect(JSON.parse(told("health"))).toMatchObject({ live: true, ready: true })
      if (!told("call").includes(`"ok":true`)) throw new Error(told("call"))
      expect(told("token-file")).toBe("600 caisson\n")
      expect(told("status")).toBe("200")
      expect(told("end").split("\n")).toEqual(
        expect.arrayContaining(["Result=success", "ExecMainStatus=0", "NRestarts=0"]),
      )
      expect(told("journal")).toContain("read again")
      expect(told("journal")).not.toContain("csn_")
      expect(told("left")).not.toContain("daemon.sock")
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
    expect(execFileSync("cat", ["/proc/mounts"], { encoding: "utf8" })).not.toContain(folder)
  })
})
