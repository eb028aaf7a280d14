"""Properties that are worked out once."""

from __future__ import annotations

import functools
from typing import Any, TypeVar

T = TypeVar("T")


class cached_property(functools.cached_property[T]):
    """That of Python, without the lock that it has before Python 3.12.

    The lock is one for all instances: a fork while another thread works out the property would
    leave it locked in the child for ever. Two threads may now both work out the same value.
    """

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        if instance is None:
            return self
        known = instance.__dict__
        if self.attrname not in known:
            known[self.attrname] = self.func(instance)
        return known[self.attrname]
