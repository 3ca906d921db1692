"""
Runs one function of a module, inside a sandbox, for the host that started this process. Has no dependencies.

The talk is on descriptors 3 (read) and 4 (write), in frames: four bytes of length, big end first, then that much JSON.
What the host asks: `call`, `resolve` or `inspect`, once; then perhaps `abort`. What is answered: any number of `event` and
`call`, each `call` followed in time by the host's `answer` to it, then one `result` or `error`, each with the host's nonce.
Standard output is the module's own.
Started before there is a call it has two words more: what to import, and the number of a descriptor (`wait_python.py`).

Guarantees: frames that it takes or gives are bounded; an answer is given once, and then the process ends.
Does not: keep the module from writing to descriptor 4 itself. It is the same process, and what it says there is as
much its word as what it returns; the nonce only tells frames from bytes that got there by accident.
"""
import atexit, asyncio, base64, importlib, importlib.util, inspect, json, os, signal, struct, sys, threading

READ, WRITE = 3, 4
MOST_IN = 64 * 1024 * 1024
MOST_NAMES = 32
MOST_MESSAGE = 4096


def read_exactly(length):
    parts = []
    while length > 0:
        part = os.read(READ, min(length, 1 << 20))
        if part == b"":
            return None
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def read_frame():
    head = read_exactly(4)
    if head is None:
        return None
    (length,) = struct.unpack(">I", head)
    body = read_exactly(length) if length <= MOST_IN else None
    return None if body is None else json.loads(body)


def plain(value):
    """What JSON has no form for, in the form that its class gives it."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(value)).decode("ascii")
    if isinstance(value, (set, frozenset, range)):
        return list(value)
    for name in ("model_dump", "_asdict", "to_dict", "isoformat", "tolist"):
        method = getattr(value, name, None)
        if callable(method) and not isinstance(value, type):
            return method()
    if hasattr(value, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    if hasattr(value, "__fspath__"):
        return os.fspath(value)
    if type(value).__name__ in ("Decimal", "UUID"):
        return str(value)
    raise TypeError(f"a value of type {type(value).__name__} has no form in JSON")


lock = threading.RLock()
state = {"answered": False, "asked": 0}
aborted = threading.Event()
on_abort = []
waiting = {}


def encode(body):
    return json.dumps({"nonce": nonce, **body}, default=plain, allow_nan=False, separators=(",", ":")).encode("utf-8")


def send(body):
    frame = struct.pack(">I", len(body)) + body
    view = memoryview(frame)
    while len(view) > 0:
        view = view[os.write(WRITE, view):]


def names_of(error):
    names = []
    for cls in type(error).__mro__:
        if cls is object:
            continue
        for name in (cls.__name__, f"{cls.__module__}.{cls.__qualname__}"):
            if name not in names and len(names) < MOST_NAMES:
                names.append(name[:200])
    return names


def status_of(error):
    """An answer's status by HTTP. Of what clients call `code`, only urllib's own is one: others are the program's exit, or
    a database's number."""
    own = ("code",) if "urllib.error.HTTPError" in names_of(error) else ()
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", *own):
            value = getattr(holder, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599:
                return int(value)
    return None


def describe(error):
    found = {"names": names_of(error), "message": ""}
    try:
        found["message"] = str(error)[:MOST_MESSAGE]
        status = status_of(error)
        if status is not None:
            found["status"] = status
    except Exception:
        pass
    return found


def finish(body):
    with lock:
        if state["answered"]:
            return
        state["answered"] = True
        try:
            try:
                frame = encode(body)
            except BaseException as error:
                frame = encode({"type": "error", "where": "result", **describe(error)})
            if len(frame) > most:
                frame = encode({"type": "error", "where": "result", "names": ["ResultTooLarge"],
                                "message": f"the result is larger than {most} bytes"})
            send(frame)
        finally:
            leave()


def leave():
    try:
        atexit._run_exitfuncs()
    except BaseException:
        pass
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            pass
    os._exit(0)


def fail(where, error):
    finish({"type": "error", "where": where, **describe(error)})


def event(value):
    with lock:
        if state["answered"]:
            return
        frame = encode({"type": "event", "value": value})
        if len(frame) <= most:
            send(frame)
            return
    fail("result", ValueError(f"a part of the result is larger than {most} bytes"))


def interrupt():
    """Raises KeyboardInterrupt where the main thread is, also while it waits."""
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


class ToolError(Exception):
    """What another tool, asked by `call`, ended with where it did not do it; `code` is the host's word for why."""

    def __init__(self, error):
        super().__init__(error.get("message", ""))
        self.code, self.kind, self.retryable = error.get("code"), error.get("class"), error.get("retryable")


class Waiting:
    def __init__(self):
        self.ready, self.said = threading.Event(), None


def call_tool(tool, input=None):
    """Another tool of the same host, one that this tool's contract requires, with the rights of whoever made this call."""
    one = Waiting()
    with lock:
        if state["answered"]:
            raise RuntimeError("this call has its answer already")
        state["asked"] += 1
        frame = encode({"type": "call", "id": state["asked"], "tool": tool, "input": {} if input is None else input})
        if len(frame) > most:
            raise ValueError(f"what {tool} is asked is larger than {most} bytes")
        waiting[state["asked"]] = one
        send(frame)
    one.ready.wait()
    if one.said.get("ok"):
        return one.said.get("value")
    raise ToolError(one.said.get("error") or {})


def hear_answer(said):
    one = waiting.pop(said.get("id"), None)
    if one is not None:
        one.said = said
        one.ready.set()


class Context:
    def __init__(self, given):
        self.__dict__.update(given)
        self.signal, self.call = aborted, call_tool


def takes_context(target):
    try:
        return "ctx" in inspect.signature(target).parameters
    except (TypeError, ValueError):
        return False


def listen():
    try:
        while (said := read_frame()) is not None:
            if said.get("do") == "abort" and not aborted.is_set():
                aborted.set()
                (on_abort[-1] if on_abort else interrupt)()
            elif said.get("do") == "answer":
                hear_answer(said)
    except Exception:
        pass


class Unresolvable(Exception):
    pass


def module_name(distribution):
    """The module that a package of another name brings."""
    from importlib import metadata

    for name, owners in metadata.packages_distributions().items():
        if any(owner.lower().replace("_", "-") == distribution.lower().replace("_", "-") for owner in owners):
            return name
    return None


# What was imported before there was a call: its spec, and the module.
imported = None


def load(spec):
    return imported[1] if imported is not None and imported[0] == spec else load_now(spec)


def load_now(spec):
    for path in reversed(spec.get("paths", [])):
        sys.path.insert(0, path)
    path = spec.get("path")
    if path is not None:
        if os.path.isdir(path):
            sys.path.insert(0, os.path.dirname(path))
            return importlib.import_module(os.path.basename(path))
        sys.path.insert(0, os.path.dirname(path))
        name = os.path.splitext(os.path.basename(path))[0]
        made = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(made)
        sys.modules[name] = module
        made.loader.exec_module(module)
        return module
    entry = spec.get("entry")
    if entry is not None:
        return importlib.import_module(entry[:-3].replace("/", ".") if entry.endswith(".py") else entry.replace("/", "."))
    guess = spec["name"].replace("-", "_")
    try:
        return importlib.import_module(guess)
    except ModuleNotFoundError as error:
        other = module_name(spec["name"]) if error.name == guess else None
        if other is None:
            raise
        return importlib.import_module(other)


ABSENT = object()


def step(owner, name):
    return owner[name] if isinstance(owner, dict) and name in owner else getattr(owner, name, ABSENT)


def is_static(cls, name):
    return isinstance(inspect.getattr_static(cls, name, None), (staticmethod, classmethod))


def resolve(module, ref, client):
    """`client`: makes an instance of a class on the way; None: nothing is made, and what only an instance has is trusted."""
    at = module
    for index, name in enumerate(ref):
        found = step(at, name)
        if found is ABSENT and index == 0 and name == "default":
            found = step(at, "main")
        if found is ABSENT:
            raise Unresolvable(f"there is no `{'.'.join(ref[: index + 1])}` in the module")
        at = found
        rest = ref[index + 1:]
        if rest and isinstance(at, type) and not is_static(at, rest[0]):
            if client is None:
                return None
            at, client = client(at), (lambda value: value)
    # A tool that is defined as an object is called by its `execute`.
    if not callable(at) and callable(step(at, "execute")):
        at = step(at, "execute")
    if not callable(at):
        raise Unresolvable(f"`{'.'.join(ref)}` is no function")
    return at


def unmarked(value, marks):
    """The host knows secrets by marks alone; what stands for them is in this process's environment."""
    if isinstance(value, str):
        for mark, name in marks.items():
            value = value.replace(mark, os.environ.get(name, ""))
        return value
    if isinstance(value, list):
        return [unmarked(item, marks) for item in value]
    return {key: unmarked(item, marks) for key, item in value.items()} if isinstance(value, dict) else value


def put_in(args, kwargs, paths, what):
    for first, *rest in paths:
        holder, keys = (kwargs, [first, *rest]) if isinstance(first, str) else (args, [first, *rest])
        for key in keys[:-1]:
            holder = holder[key]
        holder[keys[-1]] = what


async def drain(made):
    """What came of a coroutine or an asynchronous generator; cancelled as a task where the host asks for an early end."""
    task = asyncio.current_task()
    loop = asyncio.get_running_loop()
    on_abort.append(lambda: loop.call_soon_threadsafe(task.cancel))
    if aborted.is_set():
        task.cancel()
    if inspect.isawaitable(made):
        made = await made
    streams = request.get("streaming") == "async-iterator"
    if not (streams and hasattr(made, "__aiter__")):
        return made, False
    try:
        async for part in made:
            event(part)
    finally:
        if hasattr(made, "aclose"):
            await made.aclose()
    return None, True


def iterate(made):
    iterator = iter(made)
    try:
        while True:
            event(next(iterator))
    except StopIteration as end:
        return end.value
    finally:
        if hasattr(iterator, "close"):
            iterator.close()


def call():
    try:
        module = load(request["module"])
    except BaseException as error:
        return fail("load", error)
    marks = request.get("marks", {})
    options = unmarked((request.get("client") or {}).get("with") or {}, marks)
    try:
        target = resolve(module, request["ref"], lambda cls: cls(**options))
    except Unresolvable as error:
        return fail("resolve", error)
    args, kwargs = unmarked(request.get("args", []), marks), unmarked(request.get("named", {}), marks)
    put_in(args, kwargs, request.get("signals", []), aborted)
    put_in(args, kwargs, request.get("calls", []), call_tool)
    if request.get("context") is not None and takes_context(target):
        kwargs["ctx"] = Context(request["context"])
    if request.get("streaming") == "callback":
        args.append(event)
    made, streamed = target(*args, **kwargs), False
    if inspect.isawaitable(made) or hasattr(made, "__aiter__"):
        made, streamed = asyncio.run(drain(made))
    lists = (str, bytes, bytearray, dict, list, tuple)
    if not streamed and request.get("streaming") == "async-iterator" and hasattr(made, "__iter__") and not isinstance(made, lists):
        made, streamed = iterate(made), True
    finish({"type": "result", "value": made, "streamed": streamed})


def look():
    try:
        module = load(request["module"])
    except BaseException as error:
        return fail("load", error)
    if request["do"] == "inspect":
        at = module
        for name in request["ref"]:
            at = step(at, name)
        kind = lambda value: "function" if callable(value) else "undefined" if value is ABSENT else "object"
        keys = at.keys() if isinstance(at, dict) else [name for name in dir(at) if not name.startswith("_")]
        return finish({"type": "result", "value": {"type": kind(at), "keys": {key: kind(step(at, key)) for key in keys}}})
    faults = []
    for ref in request["refs"]:
        try:
            resolve(module, ref, None)
            faults.append(None)
        except Unresolvable as error:
            faults.append(str(error))
    finish({"type": "result", "value": faults})


def main_name(spec):
    # What the module finds as the main program is not this text.
    return [spec.get("name") or spec.get("path") or ""]


if len(sys.argv) == 3:
    early, door = json.loads(sys.argv[1]), int(sys.argv[2])
    waits = importlib.util.spec_from_file_location("wait_python", os.path.join(os.path.dirname(__file__), "wait_python.py"))
    waiter = importlib.util.module_from_spec(waits)
    waits.loader.exec_module(waiter)
    sys.argv = main_name(early)
    imported = (early, waiter.begin_before_call(lambda: load_now(early), door))
request = read_frame()
if request is None:
    os._exit(1)
for descriptor in (READ, WRITE):
    os.set_inheritable(descriptor, False)
nonce, most = request["nonce"], request["most"]
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Thread(target=listen, daemon=True).start()
sys.argv = main_name(request["module"])
try:
    call() if request["do"] == "call" else look()
except BaseException as error:
    fail("call", error)
