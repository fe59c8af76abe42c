# SPDX-License-Identifier: Apache-2.0
"""What a disk has after its power failed: replays the log of file_calls.c on the files as they were before.

Only the bytes of a file that fsync() covered survive; a file that was written since has zeros, or nothing. A change of
names survives if its folder was synced afterwards, or, as journals write more than they must, also without that.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import stat

EXCHANGE = 2  # RENAME_EXCHANGE


@dataclasses.dataclass(eq=False)
class Node:
    """A file, folder or link, by whatever name."""

    kind: str  # file, folder, link
    content: bytes = b""  # of a file, as it survives; of a link, its target
    bytes: int = 0  # of a file, as programs saw it
    is_synced: bool = True
    mode: int = 0o644
    modified_ns: int | None = None
    names: dict[bytes, Node] = dataclasses.field(default_factory=dict)  # of a folder


@dataclasses.dataclass
class Change:
    """Names that one call changed: (folder, name, what the name has then)."""

    names: list[tuple[Node, bytes, Node | None]]
    nodes: list[Node]
    is_durable: bool = False

    def apply(self) -> None:
        for folder, name, node in self.names:
            if node is None:
                folder.names.pop(name, None)
            else:
                folder.names[name] = node


def read_tree(path: pathlib.Path, inodes: dict[int, Node]) -> Node:
    """The files below a folder; hard links are one node."""
    status = path.lstat()
    if status.st_ino in inodes:
        return inodes[status.st_ino]
    node = Node("file", mode=stat.S_IMODE(status.st_mode), modified_ns=status.st_mtime_ns)
    inodes[status.st_ino] = node
    if path.is_symlink():
        node.kind, node.content = "link", os.fsencode(os.readlink(path))
    elif path.is_dir():
        node.kind = "folder"
        node.names = {os.fsencode(name): read_tree(path / name, inodes) for name in sorted(os.listdir(path))}
    else:
        node.content = path.read_bytes()
        node.bytes = len(node.content)
    return node


def write_tree(node: Node, path: bytes, written: dict[int, bytes] | None = None, lost: str = "zeros") -> None:
    """Writes the files; `lost` says what one has whose bytes were not synced: zeros, or nothing."""
    written = {} if written is None else written
    if id(node) in written:
        os.link(written[id(node)], path, follow_symlinks=False)
        return
    if node.kind == "folder":
        os.mkdir(path)
        for name, inner in node.names.items():
            write_tree(inner, path + b"/" + name, written, lost)
    elif node.kind == "link":
        os.symlink(node.content, path)
    else:
        content = node.content if node.is_synced else bytes(node.bytes) if lost == "zeros" else b""
        with open(path, "wb") as file:
            file.write(content)
        os.chmod(path, node.mode)
        written[id(node)] = path
    if node.modified_ns is not None and node.kind != "link":
        os.utime(path, ns=(node.modified_ns, node.modified_ns))


class Replay:
    """The disk as it was before, and the calls of one run on it, one after the other."""

    def __init__(self, root: pathlib.Path) -> None:
        self.inodes: dict[int, Node] = {}
        self.root = read_tree(root, self.inodes)
        self.before = {folder: dict(folder.names) for folder in self.inodes.values() if folder.kind == "folder"}
        self.changes: list[Change] = []
        self.removed: dict[Node, list[Change]] = {}

    def change(self, names: list[tuple[Node | None, bytes, Node | None]], nodes: list[Node]) -> None:
        seen = [(folder, name, node) for folder, name, node in names if folder is not None]
        change = Change(seen, nodes)
        change.apply()
        self.changes.append(change)

    def step(self, words: list[str], log: pathlib.Path) -> None:
        """Takes one line of the log that is not a call."""
        kind, *values = words
        folder_of = lambda index: self.inodes.get(int(values[index]))  # noqa: E731
        name_of = lambda index: bytes.fromhex(values[index])  # noqa: E731
        if kind == "unnamed":
            self.inodes[int(values[0])] = Node("file")
        elif kind in ("create", "mkdir"):
            node = Node("file" if kind == "create" else "folder", mode=0o644 if kind == "create" else 0o755)
            self.inodes[int(values[2])] = node
            self.change([(folder_of(0), name_of(1), node)], [node])
        elif kind == "link":
            node = self.inodes[int(values[2])]
            self.change([(folder_of(0), name_of(1), node)], [node])
        elif kind == "unlink":
            node = self.inodes[int(values[2])]
            self.change([(folder_of(0), name_of(1), None)], [node])
        elif kind == "rename":
            old = self.inodes[int(values[4])]
            new = self.inodes.get(int(values[5]))
            exchanged = new if int(values[6]) & EXCHANGE else None
            if new is old:
                return  # two names of one file: rename() does nothing
            names = [(folder_of(0), name_of(1), exchanged), (folder_of(2), name_of(3), old)]
            self.change(names, [old, *([new] if new else [])])
        elif kind == "data":
            node = self.inodes[int(values[0])]
            node.is_synced, node.bytes, node.modified_ns = False, int(values[1]), None
        elif kind == "sync":
            node = self.inodes[int(values[0])]
            copy = log / values[1]
            node.content, node.is_synced = copy.read_bytes(), True
            node.bytes = len(node.content)
        elif kind == "syncdir":
            self.sync(self.inodes[int(values[0])])

    def sync(self, folder: Node) -> None:
        """What was done in the folder survives, and what was done before with the files that it names."""
        for index in range(len(self.changes) - 1, -1, -1):
            change = self.changes[index]
            if change.is_durable or all(folder is not changed for changed, _, _ in change.names):
                continue
            change.is_durable = True
            self.settle(index, change.nodes)
        own = [index for index, change in enumerate(self.changes) if folder in change.nodes]
        for index in own:  # a folder that is synced has its own name
            self.changes[index].is_durable = True

    def settle(self, last: int, nodes: list[Node]) -> None:
        for change in self.changes[:last]:
            if not change.is_durable and any(node in change.nodes for node in nodes):
                change.is_durable = True

    def write(self, path: pathlib.Path, *, names: str, lost: str) -> None:
        """Writes what survives: `names` says whether changes of names that were not synced are kept or undone."""
        now = {folder: dict(folder.names) for folder in self.inodes.values() if folder.kind == "folder"}
        try:
            if names == "undone":
                for folder in now:
                    folder.names = dict(self.before.get(folder, {}))
                for change in self.changes:
                    if change.is_durable:
                        change.apply()
            write_tree(self.root, os.fsencode(path), lost=lost)
        finally:
            for folder, kept in now.items():
                folder.names = kept


def read_log(log: pathlib.Path) -> list[list[str]]:
    """The lines of a log, as words: a call's number, what was done, and with what."""
    return [line.split(" ") for line in (log / "log").read_text().splitlines()]
