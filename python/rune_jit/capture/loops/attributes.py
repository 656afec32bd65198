"""Attributes of objects in loops that run apart (apart.py). Each attribute becomes a variable of
the loop's function. The statements of a method replace its calls (methods.py):

    for i in range(self.steps):         for i in range(self_steps):
        self.w -= self.slope(x)             slope_x = x
        self.norms.append(...)              self_w -= slope_x @ self_w
                                            self_norms.append(...)

(The variables have names with a dot, such as "self.w", which no source can contain.) After the
loop, each attribute that the loop assigns gets the value of its variable."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Mapping
from typing import Any

from rune_jit.capture.loops.effects import OF_ANY_NAME
from rune_jit.capture.loops.liveness import stored
from rune_jit.capture.loops.members import classes_of, member
from rune_jit.capture.loops.methods import Functions, are_as_before, has_own, with_methods
from rune_jit.capture.loops.nodes import Transformer, children, copied, walk
from rune_jit.capture.loops.structures import class_of
from rune_jit.capture.objects import can_be_copied

_DEEPEST = 4  # objects in attributes of objects


class Attributes:
    """The attributes that a loop uses as variables."""

    def __init__(
        self,
        loop: ast.stmt,
        objects: dict[str, Any],
        attributes: dict[str, tuple[str, str]],
        functions: Functions,
    ) -> None:
        """`objects` has an object of each class that the loop uses, and `attributes` an object and
        the attribute's name, by the names of variables."""
        self.loop, self._functions = loop, functions
        self._kinds = {name: class_of(x) for name, x in objects.items()}
        self._attributes = attributes
        # (In the order in which the loop assigns them, so that objects get new ones in this order.)
        self.assigned = tuple([x for x in _stored_in_order(loop) if x in attributes])

    def initial(self, held: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The values of the variables before the loop, except those of attributes that do not
        exist, and the objects. None if a name or attribute no longer holds an object of the class
        that was examined, if two of them hold the same one, or if a method is another one."""
        if not are_as_before(self._functions):
            return None
        found: dict[str, Any] = {}
        for variable, (of, name) in self._attributes.items():
            x = found.get(of, held.get(of))
            if class_of(x) is not self._kinds[of]:
                return None
            value = member(x, name)
            if value is not None or name in vars(x):
                found[variable] = value
        objects = [found.get(of, held.get(of)) for of in self._kinds]
        if len(set(map(id, objects))) < len(objects):
            return None
        for of, name, _ in self._functions.values():
            if any(class_of(x) is of and has_own(x, name) for x in objects):
                return None
        variables = {name: x for name, x in found.items() if name not in self._kinds}
        return variables, dict(zip(self._kinds, objects, strict=True))

    def assign(self, objects: dict[str, Any], values: tuple[Any, ...]) -> None:
        """Assigns the attributes of the objects that `initial` found."""
        for variable, value in zip(self.assigned, values, strict=True):
            of, name = self._attributes[variable]
            setattr(objects[of], name, value)


def _stored_in_order(x: ast.AST) -> dict[str, None]:
    """The names that code stores, in the order of their first stores in the source."""
    found = dict.fromkeys(
        [x.id] if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store) else []
    )
    for part in children(x):
        found |= _stored_in_order(part)
    return found


def attributes_of(
    loop: ast.stmt, held: Mapping[str, Any], module: dict[str, Any], code: types.CodeType
) -> Attributes | None:
    """The attributes of the objects that names of a loop hold. None if there are none, or if the
    loop uses an object as a whole, assigns its name, or calls a method that cannot be part of the
    loop."""
    names = {x.id for x in walk(loop) if isinstance(x, ast.Name)}
    objects = {name: held[name] for name in sorted(names) if name in held and _is_plain(held[name])}
    made, found, kinds = copied(loop), dict[str, tuple[str, str]](), dict[str, Any]()
    functions: Functions = {}
    for _ in range(_DEEPEST):
        if not objects:
            break
        if stored([made]) & objects.keys():
            return None
        expanded = with_methods(made, objects, module, code)
        if expanded is None:
            return None
        renaming = _Renaming(objects)
        made = renaming.visit(expanded[0])
        if any(isinstance(x, ast.Name) and x.id in objects for x in walk(made)):
            return None
        functions |= expanded[1]
        kinds |= objects
        found |= renaming.found
        values = {name: member(objects[of], of_it) for name, (of, of_it) in renaming.found.items()}
        if any(map(_is_computed, values.values())):
            return None
        objects = {name: x for name, x in values.items() if _is_plain(x)}
    return Attributes(made, kinds, found, functions) if kinds and not objects else None


def _is_plain(x: Any) -> bool:
    """Whether x consists of its attributes, which Python reads and assigns without a call."""
    if not can_be_copied(x) or type(x) in (list, tuple, dict):
        return False
    return not any(name in vars(base) for base in classes_of(type(x)) for name in OF_ANY_NAME)


def _is_computed(x: Any) -> bool:
    """Whether an attribute is a property, a method or another descriptor."""
    return inspect.isdatadescriptor(x) or isinstance(
        x, (types.FunctionType, staticmethod, classmethod)
    )


class _Renaming(Transformer):
    """Replaces the attributes of names by variables."""

    def __init__(self, objects: Mapping[str, Any]) -> None:
        self._objects = objects
        self.found: dict[str, tuple[str, str]] = {}

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if not isinstance(node.value, ast.Name) or node.value.id not in self._objects:
            return self.generic_visit(node)
        variable = f"{node.value.id}.{node.attr}"
        self.found[variable] = node.value.id, node.attr
        return ast.copy_location(ast.Name(variable, node.ctx), node)
