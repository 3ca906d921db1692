"""
Waits with a module imported for the one call that it is then used for. Part of `run-python.py`; has no dependencies.

At a descriptor, the door, it says `W`, imports, and hears what the call brings: its environment and folder, in a frame.
Guarantees: an import that failed, or that looked at anything which only a call has, is of no use to one: a variable that
came with it, a file of the workspace, the home or the scratch, another host, a child process, code that is not Python.
Then it says `U` and why, and begins anew as the same command in the same place, as if it was started then. So it does where
a file that the import used is another one, or holds something else, when the call comes.
Does not: see what a module that hides it looks at. It is in its call's own sandbox already, where there is nothing yet.
"""
import json, os, re, struct, sys

OWN_FOLDERS = ["/workspace", "/tmp", "/dev/shm", "/run/caisson", os.environ.get("HOME", "/home/tool")]
EVENTS = re.compile(r"^(socket\.(connect|bind|sendto|getaddrinfo|gethost)|subprocess\.|os\.(exec|fork|posix_spawn|spawn|system|chdir|kill)|pty\.|ctypes\.)")
FILES = re.compile(r"^(open$|os\.(listdir|scandir|mkdir|remove|rename|rmdir|truncate|utime|chmod|link|symlink)|shutil\.|sqlite3\.connect|glob\.)")
LOOKS = ("stat", "lstat", "access", "readlink")
AT_START = re.compile(r"^(PYTHON|LD_|SSL_CERT|OPENSSL_|MALLOC_|LC_|LANG$|TZ$)")
MOST_WHY = 200
# The private pipes once more, which a Node would need here.
SPARE = (60, 61)


stat = os.stat


def facts_of(path):
    try:
        facts = stat(path)
    except (OSError, ValueError) as error:
        return str(error)
    return (facts.st_dev, facts.st_ino, facts.st_mode, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)


class Looked:
    """What was asked for while there was no call."""

    def __init__(self):
        # Files that were used, each as it was before that.
        self.files = {}
        self.variables, self.everything, self.why, self.over = set(), False, None, False

    def at(self, what):
        if not self.over and self.why is None:
            self.why = what

    def uses(self, path):
        if not self.over and path not in self.files:
            self.files[path] = facts_of(path)

    def loads(self):
        """Modules whose compiled form was taken are told by their source."""
        for module in list(sys.modules.values()):
            for path in (getattr(module, "__file__", None), getattr(module, "__cached__", None)):
                if isinstance(path, str) and not is_calls(path):
                    self.uses(path)

    def is_stale(self):
        return any(facts_of(path) != facts for path, facts in self.files.items())

    def variable(self, name):
        if not self.over:
            self.variables.add(os.fsdecode(name))

    def all(self):
        if not self.over:
            self.everything = True


def is_calls(path):
    """A path in a folder that is a call's own."""
    try:
        text = os.path.normpath(os.path.join("/workspace", os.fsdecode(path)))
    except TypeError:
        return False
    return any(text == own or text.startswith(own + "/") for own in OWN_FOLDERS)


def watch_variables(looked):
    environs = [os.environ, os.environb]
    own = type(os.environ)

    class Watched(own):
        def __getitem__(self, name):
            looked.variable(name)
            return own.__getitem__(self, name)

        def __iter__(self):
            looked.all()
            return own.__iter__(self)

        def __setitem__(self, name, value):
            looked.at(f"a variable that it sets ({name})")
            own.__setitem__(self, name, value)

        def __delitem__(self, name):
            looked.at(f"a variable that it removes ({name})")
            own.__delitem__(self, name)

    for each in environs:
        each.__class__ = Watched

    def stop():
        for each in environs:
            each.__class__ = own

    return stop


def watch_looks(looked):
    before = {name: getattr(os, name) for name in LOOKS}

    def watched(name, made):
        def look(path, *args, **kwargs):
            if not looked.over and not isinstance(path, int):
                if is_calls(path):
                    looked.at(f"{name} of {path}")
                else:
                    looked.uses(os.fsdecode(path))
            return made(path, *args, **kwargs)

        return look

    for name, made in before.items():
        setattr(os, name, watched(name, made))

    def stop():
        for name, made in before.items():
            setattr(os, name, made)

    return stop


def watch(looked):
    native = os.path.dirname(getattr(sys.modules.get("_json"), "__file__", None) or "/nowhere/")

    def hook(event, args):
        if looked.over:
            return
        if event == "import" and len(args) > 1 and isinstance(args[1], str) and os.path.dirname(args[1]) != native:
            looked.at("code that is not Python")
        elif EVENTS.match(event):
            looked.at(event)
        elif FILES.match(event) and args and isinstance(args[0], (str, bytes, os.PathLike)):
            if is_calls(args[0]):
                looked.at(f"{event} of {os.fsdecode(args[0])}")
            else:
                looked.uses(os.fsdecode(args[0]))

    sys.addaudithook(hook)
    stops = [watch_variables(looked), watch_looks(looked)]

    def stop():
        looked.over = True
        for each in stops:
            each()

    return stop


def take(door, length):
    parts = []
    while length > 0:
        part = os.read(door, min(length, 1 << 20))
        if part == b"":
            # Nobody has use for it any more.
            os._exit(0)
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def begin_before_call(load, door):
    """`load` imports the module, which is answered in its call: with its environment, in its folder."""
    looked, module = Looked(), None
    stop = watch(looked)
    os.set_inheritable(door, False)
    for descriptor in SPARE:
        os.close(descriptor)
    os.write(door, b"W\n")
    try:
        module = load()
    except BaseException as error:
        looked.at(f"an error ({error})")
    looked.loads()
    if looked.why is not None:
        os.write(door, ("U " + looked.why[:MOST_WHY].replace("\n", " ") + "\n").encode("utf-8", "replace"))
    (length,) = struct.unpack(">I", take(door, 4))
    call = json.loads(take(door, length))
    stale = looked.is_stale()
    stop()
    os.close(door)
    os.chdir(call["folder"])
    env, now = call["env"], dict(os.environ)
    changed = [name for name in {*env, *now} if env.get(name) != now.get(name)]
    seen = lambda name: AT_START.match(name) or looked.everything or name in looked.variables
    if looked.why is not None or any(seen(name) for name in changed) or stale:
        os.execve(sys.orig_argv[0], sys.orig_argv[:-2], env)
    for name in changed:
        if name in env:
            os.environ[name] = env[name]
        else:
            del os.environ[name]
    return module
