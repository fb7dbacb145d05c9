"""What can go wrong between bytes and handlers, as exceptions. A protocol's map gives codes and texts."""

from quintet.rpc.messages import WireError


class Fault(Exception):
    """Raised on this floor. The sentence is for logs; what the wire says is the protocol's own."""


class UnknownMethod(Fault):
    def __init__(self, method: str) -> None:
        super().__init__(f"unknown method: {method}")
        self.method = method


class BadParams(Fault):
    """`detail` says what did not fit, with its path (`$.a.b`) where there is one."""

    def __init__(self, method: str, detail: str) -> None:
        super().__init__(f"bad params for {method}: {detail}")
        self.method = method
        self.detail = detail


class Refused(Fault):
    """The guard said no."""

    def __init__(self, method: str, role: str) -> None:
        super().__init__(f"{role or 'this caller'} may not call {method}")
        self.method = method
        self.role = role


class Overloaded(Fault):
    """More calls at once than one connection may have."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"more than {limit} calls at once")
        self.limit = limit


class Ended(Fault):
    """The connection is over; nothing more can be sent or answered."""


class AlreadyOpen(Fault):
    """A reverse request with this id still waits for its answer."""


class Remote(Fault):
    """The other side answered a reverse request with an error."""

    def __init__(self, error: WireError) -> None:
        super().__init__(f"{error.code}: {error.message}")
        self.error = error


class BadReply(Fault):
    """The other side answered a reverse request with a result of another shape."""
