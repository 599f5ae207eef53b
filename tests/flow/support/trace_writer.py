"""Writes made-up traces (doc/trace.md), as one thread of a process would: for tests of what reads them."""
import struct

SPACE, RESERVE, RELEASE, LEASE, FREE, OUT_OF_MEMORY, CREATE, DESTROY, REPLICA, TRANSFER, EVICT, MAP, UNMAP, LAUNCH, USE, COMPLETED, TEXT, REFUSED = (
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18)
CHUNK, CHUNK_HEADER, EVENT = 64 << 10, 48, 48


def pack(kind, ticks, *, flags=0, queue=0, storage=0, address=0, size=0, extra=0, space=1, other=0):
    return struct.pack("<QIBBBBQQQQ", ticks, queue, space, other, flags, kind, storage, address, size, extra)


def pack_text(ticks, number, text):
    data = text.encode()
    return pack(TEXT, ticks, space=0, storage=number, size=len(data)) + data.ljust(-(-len(data) // EVENT) * EVENT, b"\0")


def write_events(path, packed):
    """Events with their texts, each whole in one chunk. A tick is a nanosecond."""
    with open(path, "wb") as file:
        file.write(struct.pack("<8sIIQQII", b"POLDTRC\n", 3, CHUNK, 0, 0, 4711, 0).ljust(CHUNK, b"\0"))
        parts, length, number = [], 0, 0

        def flush():
            nonlocal parts, length, number
            if not parts:
                return
            number += 1
            first = struct.unpack_from("<Q", parts[0])[0]
            file.write((struct.pack("<4sIQQdQQ", b"CHNK", 0, first, first, 1.0, number, 0) + b"".join(parts)).ljust(CHUNK, b"\0"))
            parts, length = [], 0

        for event in packed:
            if length + len(event) > CHUNK - CHUNK_HEADER:
                flush()
            parts.append(event)
            length += len(event)
        flush()


class Maker:
    """Events one after the other, 1 us apart unless told otherwise."""

    def __init__(self):
        self.ticks = 0
        self.events = []

    def add(self, kind, after=1000, **fields):
        self.ticks += after
        self.events.append(pack(kind, self.ticks, **fields))

    def text(self, number, text):
        self.events.append(pack_text(self.ticks, number, text))

    def write(self, path):
        write_events(path, self.events)
