"""
Mounts one module written for Amplifier, and lists its tools, calls one of them, or asks its hooks. Runs in the same
process as the shim that loads it, inside a sandbox. Has no dependencies.

Guarantees: what it answers is plain JSON of a bounded size: a tool's result with what its budget leaves of it, and how much
that left out. A tool that throws has answered an error by the name of its class. What `mount` gave back for cleaning up is
called when the call is over, and is not waited for longer than a moment.
Does not: keep the module from saying anything else; it is one process.
"""
import __main__ as shim
import asyncio, importlib.util, inspect, json, os, signal, sys

MOST_TOOLS, MOST_NAME, MOST_TEXT = 64, 200, 2000
MOST_SCHEMA, MOST_METADATA, MOST_EVENT, MOST_EVENTS = 65536, 65536, 65536, 200
CLEANUP_SECONDS = 2


def ours():
    path = os.path.join(os.path.dirname(__file__), "amplifier_core.py")
    made = importlib.util.spec_from_file_location("caisson_amplifier_core", path)
    module = importlib.util.module_from_spec(made)
    sys.modules["caisson_amplifier_core"] = module
    made.loader.exec_module(module)
    return module


core = ours()


class NoMount(Exception):
    pass


class NoTool(Exception):
    pass


class NoResult(Exception):
    pass


class NoForm(Exception):
    pass


def text(value, most):
    return ("" if value is None else str(value)).encode("utf-8", "replace").decode("utf-8")[:most]


def as_json(value):
    return json.dumps(value, default=shim.plain, allow_nan=False, separators=(",", ":"))


def told():
    """What the module emits by itself, to whoever observes the call: so much of it, and no more."""
    count = 0

    def tell(event, data):
        nonlocal count
        if str(event).startswith("tool:"):
            return
        count += 1
        if count > MOST_EVENTS:
            return
        try:
            plain = json.loads(as_json(data))
        except Exception:
            plain = None
        if plain is not None and len(as_json(plain)) > MOST_EVENT:
            plain = None
        shim.event({"event": text(event, MOST_NAME), "data": plain})

    return tell


def find_core(spec):
    """The real package where the module's environment has it, else ours."""
    here = os.path.dirname(__file__)
    while here in sys.path:
        sys.path.remove(here)
    found = [path for path in spec.get("paths", []) if path not in sys.path]
    beside = os.path.dirname(spec["path"]) if "path" in spec else None
    sys.path[:0] = [*found, *([beside] if beside is not None and beside not in sys.path else [])]
    if importlib.util.find_spec("amplifier_core") is None:
        core.take_the_name()
        return "caisson"
    return "module"


async def settled(made):
    return await made if inspect.isawaitable(made) else made


def is_tool(value):
    return callable(getattr(value, "execute", None)) and not isinstance(value, type)


class Mounted:
    def __init__(self, asked, tell=None):
        self.asked, self.tell, self.cleanups = asked, tell, []

    async def __aenter__(self):
        spec, config = self.asked["module"], self.asked.get("config", {})
        self.core = find_core(spec)
        mount = getattr(shim.load(spec), "mount", None)
        if not callable(mount):
            raise NoMount("the module has no `mount(coordinator, config)`")
        self.coordinator = core.ModuleCoordinator(config={}, told=self.tell)
        self.cleanups = self.coordinator.cleanups
        made = await settled(mount(self.coordinator, config))
        tools = self.coordinator.mount_points["tools"]
        for each in made if isinstance(made, (list, tuple)) else [made]:
            if is_tool(each):
                if not any(each is known for known in tools.values()):
                    self.coordinator.mount("tools", each)
            elif callable(each):
                self.cleanups.append(each)
        return self

    async def __aexit__(self, *_):
        async def clean():
            for cleanup in reversed(self.cleanups):
                await settled(cleanup())

        def late(*_):
            raise TimeoutError("it took too long")

        # One that blocks the loop is interrupted as well.
        before = signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, CLEANUP_SECONDS + 1)
        try:
            await asyncio.wait_for(clean(), CLEANUP_SECONDS)
        except (Exception, asyncio.CancelledError) as error:
            print(f"cleaning up: {type(error).__name__}", file=sys.stderr)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


def schema_of(tool):
    schema = getattr(tool, "input_schema", None)
    schema = schema() if callable(schema) else schema
    if not schema and callable(getattr(tool, "get_schema", None)):
        schema = tool.get_schema()
    if not isinstance(schema, dict) or not schema:
        return None
    written = as_json(schema)
    return None if len(written) > MOST_SCHEMA else json.loads(written)


def facts(name, tool):
    found = {"name": text(name, MOST_NAME + 1), "description": text(getattr(tool, "description", ""), MOST_TEXT), "schema": None}
    try:
        found["schema"] = schema_of(tool)
    except Exception as error:
        found["fault"] = text(f"{type(error).__name__}", MOST_NAME)
    return found


async def discover(asked):
    async with Mounted(asked) as mounted:
        tools = mounted.coordinator.mount_points["tools"]
        listed = [facts(name, tool) for name, tool in list(tools.items())[:MOST_TOOLS]]
        handlers = mounted.coordinator.hooks.list_handlers()
        events = [text(event, MOST_NAME) for event, names in list(handlers.items())[:MOST_TOOLS] if names]
        return {"tools": listed, "more": max(0, len(tools) - MOST_TOOLS), "events": events, "core": mounted.core}


def within_budget(output, most):
    """What is kept of an output, and how many characters are not."""
    if output is None or isinstance(output, (bool, int, float)):
        return json.loads(as_json(output)), 0
    if isinstance(output, str):
        whole = output.encode("utf-8", "replace").decode("utf-8")
        return whole[:most], max(0, len(whole) - most)
    written = as_json(output)
    return (json.loads(written), 0) if len(written) <= most else (written[:most], len(written) - most)


def read_result(made, most):
    read = made.get if isinstance(made, dict) else lambda name, default=None: getattr(made, name, default)
    success = read("success", None)
    if not isinstance(success, bool):
        raise NoResult(f"`execute` answered {type(made).__name__}, and not a ToolResult")
    try:
        output, left_out = within_budget(read("output", None), most)
        as_json([read("error", None), read("metadata", None)])
    except (TypeError, ValueError, RecursionError) as fault:
        raise NoForm(text(fault, MOST_TEXT)) from None
    error, metadata = read("error", None), read("metadata", None)
    if error is not None and not isinstance(error, dict):
        error = {"message": text(error, MOST_TEXT)}
    metadata = metadata if isinstance(metadata, dict) else None
    found = {"success": success, "output": output, "left_out": left_out, "error": error, "metadata": metadata}
    for name in ("error", "metadata"):
        if found[name] is not None and len(as_json(found[name])) > MOST_METADATA:
            found[name] = {"message": text(found[name].get("message"), MOST_TEXT), "left_out": True} if name == "error" else None
    return found


def thrown(error):
    return {
        "success": False, "output": None, "left_out": 0, "metadata": None,
        "error": {"type": type(error).__name__, "message": text(error, shim.MOST_MESSAGE), "raised": shim.names_of(error)},
    }


async def execute(tool, given, hooks, most):
    name = getattr(tool, "name", None)
    before = await hooks.run("tool:pre", {"tool_name": name, "tool_input": given, "input": given})
    if before.action in ("deny", "ask_user"):
        reason = text(getattr(before, "reason", None), MOST_TEXT)
        return {**thrown(PermissionError(reason)), "error": {"type": "HookDenied", "message": reason}}
    changed = before.data if isinstance(before.data, dict) else {}
    given = next((changed[key] for key in ("input", "tool_input") if isinstance(changed.get(key), dict) and changed[key] is not given), given)
    try:
        found = read_result(await settled(tool.execute(given)), most)
    except (NoResult, NoForm):
        raise
    except Exception as error:
        found = thrown(error)
    event, about = ("tool:post", "result") if found["success"] else ("tool:error", "error")
    await hooks.run(event, {"tool_name": name, "tool_input": given, about: found if found["success"] else found["error"]})
    return found


async def call(asked):
    async with Mounted(asked, told()) as mounted:
        tool = mounted.coordinator.mount_points["tools"].get(asked["tool"])
        if tool is None:
            raise NoTool(f"the module mounts no tool `{text(asked['tool'], MOST_NAME)}`")
        return await execute(tool, asked["input"], mounted.coordinator.hooks, asked["most"])


async def hook(asked):
    """The module's own answer to one event, of all its handlers."""
    async with Mounted(asked) as mounted:
        hooks = mounted.coordinator.hooks
        for each in mounted.coordinator.mount_points["tools"].values():
            raise NoMount(f"a module of hooks mounts no tools, and this one mounts {type(each).__name__}")
        answer = await hooks.run(asked["event"], asked["data"])
        changed = answer.data if isinstance(answer.data, dict) and answer.data is not asked["data"] else None
        return {
            "action": text(answer.action, MOST_NAME),
            "reason": text(getattr(answer, "reason", None), MOST_TEXT),
            "message": text(getattr(answer, "user_message", None), MOST_TEXT),
            "data": changed,
            "handlers": len(hooks.list_handlers(asked["event"])[asked["event"]]),
        }
