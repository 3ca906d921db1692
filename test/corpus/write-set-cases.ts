/**
 * What programs do to a workspace, and the write set that must be read from it. Data only: the same cases drive the
 * layer reader, the commit and each backend.
 *
 * `before` and `run` are `sh` snippets, run in the workspace as its owner with umask 022: the first builds it, the
 * second is the tool. `effects` is the whole expected set as `kind path`, with `from>path` for renames and links.
 */
export interface WriteSetCase {
  readonly name: string
  readonly before: string
  readonly run: string
  readonly effects: readonly string[]
  /** parts of expected effects, by path */
  readonly details?: Readonly<Record<string, object>>
  /** run without an overlay the result would differ: old hard links part in a layer */
  readonly partsLinks?: true
  /** these paths must be refused, and nothing else */
  readonly refused?: readonly string[]
}

export const writeSetCases: readonly WriteSetCase[] = [
  { name: "nothing at all", before: "echo a > a", run: "true", effects: [] },
  { name: "reading only", before: "mkdir d; echo a > d/a", run: "cat d/a > /dev/null; ls -R > /dev/null", effects: [] },
  {
    name: "a new file",
    before: "true",
    run: "echo hello > a",
    effects: ["create a"],
    details: { a: { size: 6, mode: { after: 0o644 } } },
  },
  { name: "an empty new file", before: "true", run: ": > a", effects: ["create a"], details: { a: { size: 0 } } },
  {
    name: "a file deep in new folders",
    before: "true",
    run: "mkdir -p x/y; echo 1 > x/y/z",
    effects: ["mkdir x", "mkdir x/y", "create x/y/z"],
  },
  { name: "a file in an old folder", before: "mkdir -p d/e", run: "echo 1 > d/e/f", effects: ["create d/e/f"] },
  { name: "changed content", before: "echo a > a", run: "echo b > a", effects: ["modify a"] },
  {
    name: "appended content",
    before: "mkdir d; echo a > d/a; echo b > d/b",
    run: "echo b >> d/a",
    effects: ["modify d/a"],
  },
  {
    name: "a file truncated to nothing",
    before: "echo a > a",
    run: ": > a",
    effects: ["modify a"],
    details: { a: { size: 0 } },
  },
  { name: "a file rewritten with the same content", before: "echo a > a", run: "echo a > a", effects: ["touch a"] },
  { name: "a file opened for writing and left alone", before: "echo a > a", run: ": >> a", effects: [] },
  { name: "a touched file", before: "echo a > a", run: "touch a", effects: ["touch a"] },
  {
    name: "a file changed and changed back",
    before: "echo a > a",
    run: "echo b > a; echo a > a",
    effects: ["touch a"],
  },
  {
    name: "a touched file with another mode",
    before: "echo a > a",
    run: "chmod 600 a; touch -d '2001-02-03 04:05:06.123456789 UTC' a",
    effects: ["chmod a", "touch a"],
  },
  { name: "a file that only got another mode", before: "echo a > a", run: "chmod 600 a", effects: ["chmod a"] },
  { name: "a file made and removed", before: "true", run: "echo b > b; rm b", effects: [] },
  { name: "a folder made and removed", before: "mkdir d", run: "mkdir -p d/e/f; rm -r d/e", effects: [] },
  {
    name: "a mode",
    before: "echo a > a",
    run: "chmod 755 a",
    effects: ["chmod a"],
    details: { a: { mode: { before: 0o644, after: 0o755 } } },
  },
  { name: "a mode set to what it was", before: "echo a > a", run: "chmod 644 a", effects: [] },
  {
    name: "a folder's mode",
    before: "mkdir d",
    run: "chmod 700 d",
    effects: ["chmod d"],
    details: { d: { directory: true } },
  },
  {
    name: "content and mode",
    before: "echo a > a",
    run: "echo b > a; chmod 600 a",
    effects: ["modify a"],
    details: { a: { mode: { before: 0o644, after: 0o600 } } },
  },
  { name: "a deleted file", before: "echo a > a; echo b > b", run: "rm a", effects: ["delete a"] },
  {
    name: "a deleted file in a folder",
    before: "mkdir d; echo a > d/a; echo b > d/b",
    run: "rm d/a",
    effects: ["delete d/a"],
  },
  {
    name: "a deleted tree, every path listed",
    before: "mkdir -p d/e/f; echo 1 > d/1; echo 2 > d/e/2; echo 3 > d/e/f/3; ln -s 1 d/l",
    run: "rm -rf d",
    effects: ["rmdir d", "delete d/1", "rmdir d/e", "delete d/e/2", "rmdir d/e/f", "delete d/e/f/3", "delete d/l"],
  },
  {
    name: "a folder removed and made anew (opaque)",
    before: "mkdir -p d/sub; echo 1 > d/1; echo 2 > d/2; echo 3 > d/sub/3",
    run: "rm -rf d; mkdir d; echo new > d/2; echo n > d/n",
    effects: ["delete d/1", "modify d/2", "create d/n", "rmdir d/sub", "delete d/sub/3"],
  },
  {
    name: "a folder removed and made anew with the same content",
    before: "mkdir -p d/e; echo 1 > d/e/1",
    run: "rm -rf d; mkdir -p d/e; echo 1 > d/e/1",
    effects: ["touch d/e/1"],
  },
  {
    name: "an opaque folder below an opaque folder",
    before: "mkdir -p d/e/f; echo 1 > d/e/f/1; echo 2 > d/e/2",
    run: "rm -rf d; mkdir -p d/e; echo 2 > d/e/2",
    effects: ["touch d/e/2", "rmdir d/e/f", "delete d/e/f/1"],
  },
  {
    name: "a file in place of a folder",
    before: "mkdir d; echo 1 > d/1",
    run: "rm -r d; echo f > d",
    effects: ["rmdir d", "create d", "delete d/1"],
  },
  {
    name: "a folder in place of a file",
    before: "echo f > d",
    run: "rm d; mkdir d; echo 1 > d/1",
    effects: ["delete d", "mkdir d", "create d/1"],
  },
  {
    name: "a symlink in place of a file",
    before: "echo f > a; echo g > b",
    run: "ln -sfn b a",
    effects: ["delete a", "symlink a"],
  },
  {
    name: "a symlink in place of a folder",
    before: "mkdir d e; echo 1 > d/1",
    run: "rm -r d; ln -s e d",
    effects: ["rmdir d", "symlink d", "delete d/1"],
  },
  {
    name: "a folder in place of a symlink that leads outside",
    before: "ln -s /etc d",
    run: "rm d; mkdir d; echo mine > d/hostname; echo 1 > d/passwd",
    effects: ["delete d", "mkdir d", "create d/hostname", "create d/passwd"],
  },
  {
    name: "a file in place of a symlink",
    before: "echo 1 > t; ln -s t l",
    run: "rm l; echo 1 > l",
    effects: ["delete l", "create l"],
  },
  {
    name: "a new symlink",
    before: "mkdir d; echo 1 > t",
    run: "ln -s ../t d/l",
    effects: ["symlink d/l"],
    details: { "d/l": { target: "../t" } },
  },
  { name: "a dangling symlink", before: "true", run: "ln -s nowhere l", effects: ["symlink l"] },
  {
    name: "a symlink led elsewhere",
    before: "ln -s a l",
    run: "ln -sfn b l",
    effects: ["symlink l"],
    details: { l: { target: "b" } },
  },
  { name: "a symlink made anew as it was", before: "ln -s a l", run: "rm l; ln -s a l", effects: [] },
  { name: "an absolute symlink", before: "true", run: "ln -s /etc/passwd l", effects: ["symlink l"], refused: ["l"] },
  {
    name: "a symlink that climbs out",
    before: "mkdir d",
    run: "ln -s ../../x d/l",
    effects: ["symlink d/l"],
    refused: ["d/l"],
  },
  {
    name: "a symlink that climbs after a name",
    before: "mkdir d",
    run: "ln -s d/../x l",
    effects: ["symlink l"],
    refused: ["l"],
  },
  {
    name: "an old symlink to the outside that is left alone",
    before: "ln -s /etc/passwd l; echo a > a",
    run: "echo b > a",
    effects: ["modify a"],
  },
  { name: "a renamed file", before: "echo a > a; echo b > b", run: "mv a c", effects: ["rename a>c"] },
  {
    name: "a file moved to another folder",
    before: "mkdir d e; echo a > d/a",
    run: "mv d/a e/b",
    effects: ["rename d/a>e/b"],
  },
  {
    name: "a file renamed and changed",
    before: "echo a > a",
    run: "mv a c; echo x >> c",
    effects: ["delete a", "create c"],
  },
  {
    name: "a file renamed over another",
    before: "echo a > a; echo b > b",
    run: "mv a b",
    effects: ["delete a", "modify b"],
  },
  {
    name: "two files with the same content, one moved",
    before: "echo a > a; echo a > b",
    run: "mv a c",
    effects: ["rename a>c"],
  },
  {
    name: "equal files moved, where none can be told from the other",
    before: "echo a > a; echo a > b",
    run: "mv a c; mv b d",
    effects: ["delete a", "delete b", "create c", "create d"],
  },
  { name: "a moved empty file", before: ": > a", run: "mv a b", effects: ["delete a", "create b"] },
  {
    name: "a moved folder",
    before: "mkdir d; echo 1 > d/1; echo 2 > d/2",
    run: "mv d e",
    effects: ["rmdir d", "mkdir e", "rename d/1>e/1", "rename d/2>e/2"],
  },
  {
    name: "a new folder moved",
    before: "true",
    run: "mkdir d; echo 1 > d/1; mv d e",
    effects: ["mkdir e", "create e/1"],
  },
  {
    name: "two names swapped",
    before: "echo a > a; echo b > b",
    run: "mv a t; mv b a; mv t b",
    effects: ["modify a", "modify b"],
  },
  {
    name: "a name that differs in case only",
    before: "echo a > README",
    run: "mv README readme",
    effects: ["rename README>readme"],
  },
  {
    name: "new hard links",
    before: "true",
    run: "echo a > a; ln a b; ln a c",
    effects: ["create a", "hardlink a>b", "hardlink a>c"],
  },
  { name: "a hard link to an unchanged file", before: "echo a > a", run: "ln a b", effects: ["create b"] },
  {
    name: "a hard link to a changed file",
    before: "echo a > a",
    run: "ln a 0; echo x >> a",
    effects: ["hardlink a>0", "modify a"],
  },
  {
    name: "one name of an old hard link changed",
    before: "echo a > a; ln a b",
    run: "echo x > a",
    effects: ["modify a"],
    partsLinks: true,
  },
  { name: "a fifo", before: "true", run: "mkfifo p", effects: ["special p"], refused: ["p"] },
  {
    name: "a fifo in place of a file",
    before: "echo p > p",
    run: "rm p; mkfifo p",
    effects: ["delete p", "special p"],
    refused: ["p"],
  },
  { name: "a setuid file", before: "true", run: "echo a > a; chmod 4755 a", effects: ["create a"], refused: ["a"] },
  {
    name: "a setuid bit on an old file",
    before: "echo a > a",
    run: "chmod u+s a",
    effects: ["chmod a"],
    refused: ["a"],
  },
  { name: "a setgid file", before: "true", run: "echo a > a; chmod g+s a", effects: ["create a"], refused: ["a"] },
  { name: "a sticky folder", before: "true", run: "mkdir d; chmod +t d", effects: ["mkdir d"], refused: ["d"] },
  {
    name: "folders that inherit setgid",
    before: "mkdir d; chmod g+s d",
    run: "mkdir -p d/e/f; echo 1 > d/e/f/1",
    effects: ["mkdir d/e", "mkdir d/e/f", "create d/e/f/1"],
  },
  {
    name: "a sparse file",
    before: "true",
    run: "truncate -s 64M s; echo end >> s",
    effects: ["create s"],
    details: { s: { size: 67108868 } },
  },
  {
    name: "one block of an old sparse file",
    before: "truncate -s 64M s",
    run: "printf x | dd of=s bs=1 seek=1048576 conv=notrunc 2>/dev/null",
    effects: ["modify s"],
  },
  {
    name: "a file above the chunk size",
    before: "head -c 3000000 /dev/zero > z",
    run: "printf x >> z",
    effects: ["modify z"],
    details: { z: { size: 3000001 } },
  },
  {
    name: "a name that is not UTF-8",
    before: "true",
    run: "echo a > \"$(printf 'n\\377m')\"",
    effects: ["create n\\xffm"],
  },
  {
    name: "deleted names that are not UTF-8",
    before: "d=$(printf 'd\\377'); mkdir \"$d\"; echo a > \"$d/$(printf 'f\\376')\"",
    run: "rm -r d*",
    effects: ["rmdir d\\xff", "delete d\\xff/f\\xfe"],
  },
  {
    name: "names with backslash, newline, quote and accents",
    before: "true",
    run: "echo a > 'a\\b'; echo b > 'q\"'; echo c > 'é'; echo d > 'x\ny'",
    effects: ["create a\\x5cb", 'create q"', "create x\ny", "create é"],
  },
  {
    name: "dotfiles and git hooks are paths like others to the reader",
    before: "mkdir -p .git/hooks",
    run: "echo a > .git/hooks/pre-commit; echo b > .bashrc",
    effects: ["create .bashrc", "create .git/hooks/pre-commit"],
  },
  {
    name: "an unreadable new file",
    before: "true",
    run: "echo a > a; chmod 0 a",
    effects: ["create a"],
    details: { a: { mode: { after: 0 } } },
  },
  {
    name: "an unreadable new folder",
    before: "true",
    run: "mkdir d; echo 1 > d/1; chmod 0 d",
    effects: ["mkdir d", "create d/1"],
  },
  {
    name: "a place reserved for transactions",
    before: "true",
    run: "mkdir .caisson-tx d; echo a > .caisson-tx/a; echo b > d/.Caisson-TX-1",
    effects: ["mkdir .caisson-tx", "create .caisson-tx/a", "mkdir d", "create d/.Caisson-TX-1"],
    refused: [".caisson-tx", ".caisson-tx/a", "d/.Caisson-TX-1"],
  },
]
