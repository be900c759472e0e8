"""Properties that are computed once, without a lock.

Until Python 3.12, `functools.cached_property` has one lock for all instances of a class: threads that work on different
samples would wait for each other (see `_parallel`). Here two threads that ask the same instance at the same time both
compute, and either result is kept.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Self, TypeVar, overload

Value = TypeVar("Value")

if sys.version_info >= (3, 12):
    cached_property = functools.cached_property
else:

    class cached_property(functools.cached_property[Value]):  # noqa: N801
        """What Python 3.12 has under this name."""

        @overload
        def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...

        @overload
        def __get__(self, instance: object, owner: type[Any] | None = None) -> Value: ...

        def __get__(self, instance: object, owner: type[Any] | None = None) -> Self | Value:
            if instance is None:
                return self
            value = instance.__dict__[str(self.attrname)] = self.func(instance)
            return value
