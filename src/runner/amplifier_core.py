"""
What a module written for Amplifier imports as `amplifier_core`, where its own environment does not bring the real one.

Guarantees: results, hooks and the coordinator have the names, fields and awaits that such modules count on. Has no
dependencies. Does not: run a session, a provider or a model; what belongs to those is accepted and does nothing.
"""
import asyncio, inspect, sys, types
from collections import defaultdict
from typing import Any, Protocol, runtime_checkable

__version__ = "1.0.0+caisson"


class _Model:
    """Keyword arguments with defaults, as the models of the real package take them."""

    _fields: dict = {}

    def __init__(self, *args, **given):
        names = list(self._fields)
        for name, value in zip(names, args):
            given.setdefault(name, value)
        for name in names:
            default = self._fields[name]
            value = given.pop(name, default() if isinstance(default, type) else default)
            setattr(self, name, value)
        for name, value in given.items():
            setattr(self, name, value)

    def model_dump(self, **_):
        return dict(self.__dict__)

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"

    def __eq__(self, other):
        return type(other) is type(self) and other.__dict__ == self.__dict__

    __hash__ = None


class ToolResult(_Model):
    _fields = {"success": True, "output": None, "error": None, "metadata": dict}

    def get_serialized_output(self):
        if self.error:
            return f"Error: {self.error.get('message', 'Unknown error')}"
        if isinstance(self.output, (dict, list)):
            import json

            return json.dumps(self.output, default=str)
        return "" if self.output is None else str(self.output)

    def __str__(self):
        return self.get_serialized_output()


class ToolCall(_Model):
    _fields = {"id": "", "name": "", "arguments": dict}


class HookResult(_Model):
    _fields = {
        "action": "continue",
        "data": None,
        "reason": None,
        "context_injection": None,
        "context_injection_role": "system",
        "ephemeral": False,
        "approval_prompt": None,
        "approval_options": None,
        "approval_timeout": 300.0,
        "approval_default": "deny",
        "suppress_output": False,
        "user_message": None,
        "user_message_level": "info",
        "user_message_source": None,
        "append_to_last_tool_result": False,
    }


class ToolSpec(_Model):
    _fields = {"name": "", "description": "", "parameters": dict}


@runtime_checkable
class Tool(Protocol):
    name: str
    description: str

    async def execute(self, input: dict[str, Any]) -> ToolResult: ...


@runtime_checkable
class HookHandler(Protocol):
    async def __call__(self, event: str, data: dict[str, Any]) -> HookResult: ...


class HookRegistry:
    """Handlers by event, called by priority; a refusal ends the round."""

    TOOL_PRE, TOOL_POST, TOOL_ERROR = "tool:pre", "tool:post", "tool:error"

    def __init__(self, told=None):
        self._handlers = defaultdict(list)
        self._told = told
        self._fields = {}
        self._order = 0

    def register(self, event, handler, priority=0, name=None):
        self._order += 1
        entry = (priority, self._order, name or getattr(handler, "__name__", "hook"), handler)
        self._handlers[event].append(entry)
        self._handlers[event].sort(key=lambda one: one[:2])
        return lambda: entry in self._handlers[event] and self._handlers[event].remove(entry)

    on = register

    def unregister(self, name):
        for event in self._handlers:
            self._handlers[event] = [one for one in self._handlers[event] if one[2] != name]

    def set_default_fields(self, **fields):
        self._fields.update(fields)

    def list_handlers(self, event=None):
        events = [event] if event is not None else list(self._handlers)
        return {each: [name for _, _, name, _ in self._handlers[each]] for each in events}

    async def emit(self, event, data=None):
        data = {**self._fields, **(data or {})}
        if self._told is not None:
            self._told(event, data)
        return await self.run(event, data)

    async def run(self, event, data):
        """One handler after the other; a failing one is not passed over."""
        asked = None
        for _, _, name, handler in list(self._handlers[event]):
            answer = handler(event, data)
            answer = await answer if inspect.isawaitable(answer) else answer
            action = getattr(answer, "action", None)
            if action == "deny":
                answer.user_message_source = getattr(answer, "user_message_source", None) or name
                return answer
            if action == "ask_user":
                asked = asked or answer
            elif action == "modify" and isinstance(getattr(answer, "data", None), dict):
                data = answer.data
            elif action not in ("continue", "modify", "inject_context"):
                raise TypeError(f"the hook {name} answered {type(answer).__name__}, and not a HookResult")
        return asked or HookResult(action="continue", data=data)

    async def emit_and_collect(self, event, data=None, timeout=None):
        rounds = [handler(event, data or {}) for _, _, _, handler in list(self._handlers[event])]
        made = await asyncio.wait_for(asyncio.gather(*[each for each in rounds if inspect.isawaitable(each)]), timeout)
        return [getattr(each, "data", None) for each in made]


class CancellationToken:
    def __init__(self):
        self.is_cancelled = self.is_graceful = self.is_immediate = False
        self.running_tools, self.running_tool_names, self._callbacks = set(), [], []

    def on_cancel(self, callback):
        self._callbacks.append(callback)

    def register_tool_start(self, *_):
        pass

    register_tool_complete = register_child = unregister_child = register_tool_start


class _Done:
    """What was done at once, for those who await it and those who do not."""

    def __init__(self, value=None):
        self._value = value

    def __await__(self):
        return self._value
        yield


class ModuleCoordinator:
    """Mount points, capabilities, hooks and clean-up, as one module's `mount` uses them."""

    SLOTS = ("tools", "providers", "hooks", "agents")

    def __init__(self, session=None, approval_system=None, display_system=None, *, config=None, told=None):
        self.config = config if config is not None else {}
        self.hooks = HookRegistry(told)
        self.mount_points = {slot: {} for slot in self.SLOTS}
        self.mount_points.update({"orchestrator": None, "context": None, "hooks": self.hooks})
        self.session_id, self.parent_id = "caisson", None
        self.session = session or types.SimpleNamespace(session_id="caisson", parent_id=None, config=self.config)
        self.cancellation = CancellationToken()
        self.approval_system, self.display_system, self.loader = approval_system, display_system, None
        self.channels = defaultdict(list)
        self._capabilities = {"session.working_dir": "/workspace"}
        self.cleanups = []

    def mount(self, mount_point, module, name=None):
        at = self.mount_points.get(mount_point, False)
        if at is False:
            raise ValueError(f"there is no mount point {mount_point}")
        if isinstance(at, dict):
            at[name or getattr(module, "name", None) or type(module).__name__] = module
        elif mount_point != "hooks":
            self.mount_points[mount_point] = module
        return _Done()

    def unmount(self, mount_point, name=None):
        at = self.mount_points.get(mount_point)
        if isinstance(at, dict):
            at.pop(name, None)
        return _Done()

    def get(self, mount_point, name=None):
        at = self.mount_points.get(mount_point)
        return at.get(name) if isinstance(at, dict) and name is not None else at

    def register_capability(self, name, value):
        self._capabilities[name] = value

    def get_capability(self, name):
        return self._capabilities.get(name)

    def register_cleanup(self, cleanup):
        if callable(cleanup):
            self.cleanups.append(cleanup)

    def register_contributor(self, channel, name, callback):
        self.channels[channel].append({"name": name, "callback": callback})

    async def collect_contributions(self, channel):
        found = []
        for each in self.channels[channel]:
            made = each["callback"]()
            found.append(await made if inspect.isawaitable(made) else made)
        return found

    async def process_hook_result(self, result, event, hook_name="unknown"):
        return result

    async def request_cancel(self, immediate=False):
        pass

    def reset_turn(self):
        pass


class ModuleValidationError(Exception):
    pass


SUBMODULES = ("models", "interfaces", "hooks", "coordinator", "message_models", "events", "module_sources", "cancellation")
TOOL_PRE, TOOL_POST, TOOL_ERROR = HookRegistry.TOOL_PRE, HookRegistry.TOOL_POST, HookRegistry.TOOL_ERROR


def take_the_name():
    """This module is `amplifier_core` and all of its submodules from now on."""
    me = sys.modules[__name__]
    me.__path__ = []
    for name in ("amplifier_core", *(f"amplifier_core.{each}" for each in SUBMODULES)):
        sys.modules.setdefault(name, me)
