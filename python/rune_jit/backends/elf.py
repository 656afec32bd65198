"""Links object code, as LLVM emits it for x86-64 Linux, to an image (`_image.py`)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from rune_jit.backends.image import MAGIC

__all__ = ["image_of"]

# Of ELF (System V ABI, AMD64): the header's table of sections; a section's header, from its
# type on; an entry of the symbol table; a relocation.
_TABLE = struct.Struct("<40xQ10xHHH")
_SECTION = struct.Struct("<4xIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_PROGBITS, _SYMTAB, _RELA = 1, 2, 4
_WRITE, _ALLOC = 1, 2
# To the distance between a symbol and the place that is relocated, as int32.
_RELATIVE = (2, 4)


class _Section(NamedTuple):
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


def image_of(code: bytes, names: list[str]) -> bytes | None:
    """The image of an ELF object with these functions; None if it has none, because it writes to
    memory of its own, refers to what is outside of it, or lacks a function."""
    table, size, count, _ = _TABLE.unpack_from(code)
    sections = [_Section(*_SECTION.unpack_from(code, table + i * size)) for i in range(count)]
    image = bytearray(MAGIC + bytes(4 * len(names)))
    starts: dict[int, int] = {}
    for i, section in enumerate(sections):
        if not section.flags & _ALLOC or not section.size:
            continue
        if section.flags & _WRITE or section.type != _PROGBITS:
            return None
        image += bytes(-len(image) % max(section.alignment, 64))
        starts[i] = len(image)
        image += code[section.offset : section.offset + section.size]
    tables = [section for section in sections if section.type == _SYMTAB]
    symbols = [symbol for table in tables for symbol in _entries(code, table, _SYMBOL)]

    def place(symbol: tuple[int, ...]) -> int | None:
        start = starts.get(symbol[3])
        return None if start is None else start + symbol[4]

    for section in sections:
        if section.type != _RELA or section.info not in starts:
            continue
        for offset, info, addend in _entries(code, section, _RELOCATION):
            target = place(symbols[info >> 32])
            if target is None or info & 0xFFFFFFFF not in _RELATIVE:
                return None
            at = starts[section.info] + offset
            struct.pack_into("<i", image, at, target + addend - at)
    strings = sections[tables[0].link].offset
    found = {code[strings + s[0] : code.index(0, strings + s[0])].decode(): s for s in symbols}
    offsets = [place(found[name]) if name in found else None for name in names]
    if None in offsets:
        return None
    struct.pack_into(f"<{len(names)}i", image, len(MAGIC), *offsets)
    return bytes(image)


def _entries(code: bytes, table: _Section, entry: struct.Struct) -> Iterator[tuple[int, ...]]:
    return entry.iter_unpack(code[table.offset : table.offset + table.size])
