#!/usr/bin/env python3
"""The tables of docs/spec.md, made from schema/spec.schema.json; the text around them is written by hand.

  spec_doc.py --write    puts the tables into the page
  spec_doc.py --check    exit 1, with what is wrong, where the page differs, or a key has no description or is in no table

A table stands between <!--keys:SECTION--> and <!--end-->. SECTION is a path such as `nodes.power`, `top` for the whole file, or several with
commas between them, whose rows then have the section in front. A section with a table of its own is one row in the table above it.

A key's row is its `description`, `default` and first of `examples`; `x-default` says in words what holds without the key. A map with keys of
its own has a row beside theirs only where it has a default or an example. Keys that several maps share ($defs) have rows at the first of
them. Keys of `lab` are on a page of their own.
"""
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCHEMA, PAGE = "schema/spec.schema.json", "docs/spec.md"
ELSEWHERE = {"lab": "docs/lab.md"}
BEGIN, END = "<!--keys:", "<!--end-->"
TABLE = re.compile(rf"{BEGIN}(?P<sections>[a-z_.,]+)-->\n(?:\|.*\n)*{END}")

# Text that YAML takes for itself without quotation marks, in a list as well.
PLAIN = re.compile(r"(?!(?:yes|no|on|off|true|false|null)$)(?!\d+(?:\.\d*)?$)(?![\da-f:.]*:[\da-f:.]*$)[A-Za-z0-9./][\w ./:+-]*", re.I)


def yaml(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[ {', '.join(map(yaml, value))} ]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key}: {yaml(inner)}' for key, inner in value.items())} }}"
    return str(value) if not isinstance(value, str) or PLAIN.fullmatch(value) else f'"{value}"'


class Reference:
    def __init__(self, schema, page):
        self.schema, self.page = schema, page
        self.sections = [name for found in TABLE.finditer(page) for name in found["sections"].split(",")]
        self.shown = set()     # ids of the properties that have a row, or whose keys have
        self.complaints = []

    def resolved(self, schema):
        """The schema without its reference; what stands beside that comes first."""
        if "$ref" not in schema:
            return schema
        return {**self.schema["$defs"][schema["$ref"].removeprefix("#/$defs/")], **schema, "$ref": ""}

    def inside(self, schema):
        """(map of keys in a value, in a list or under names of the operator's; the path to it, such as ".NAME"), (None, "") without."""
        schema, path = self.resolved(schema), ""
        while "properties" not in schema:
            named = list(schema.get("patternProperties", {}).values()) + [schema.get("additionalProperties")]
            below = schema.get("items") or named[0]
            if not isinstance(below, dict):
                return None, ""
            path += "" if "items" in schema else ".NAME"
            schema = self.resolved(below)
        return schema, path

    def rows(self, section, schema, shown):
        """Of each key in a map: (as shown, property, whether it is required). `shown` goes in front of keys."""
        for name, given in schema["properties"].items():
            prop, path = self.resolved(given), f"{section}.{name}".removeprefix("top.")
            below, deeper = self.inside(given)
            apart = path in self.sections or path in ELSEWHERE
            whole = below is None or apart or any(key in prop for key in ("default", "x-default", "examples"))
            if id(given) in self.shown:
                continue
            self.shown.add(id(given))
            if whole:
                yield shown + name, prop, name in schema.get("required", [])
            if below is not None and not apart:
                yield from self.rows(path, below, shown + name + deeper + ".")

    def keys(self, path, schema):
        """(path, property) of every key that the schema accepts."""
        for name, given in schema["properties"].items():
            prop, here = self.resolved(given), f"{path}.{name}".lstrip(".")
            if prop.get("x-not-implemented") is True:
                continue
            yield here, given
            below, deeper = self.inside(given)
            if below is not None:
                yield from self.keys(here + deeper, below)

    def section(self, path):
        """(map of keys, path in front of keys where a table has several sections) of a section."""
        schema, shown = self.schema, ""
        for name in [] if path == "top" else path.split("."):
            schema, deeper = self.inside(schema["properties"].get(name, {}))
            if schema is None:
                raise SystemExit(f"{PAGE}: the schema has no section {path}")
            shown += name + deeper + "."
        return schema, shown

    def table(self, sections):
        rows = []
        for path in sections:
            schema, shown = self.section(path)
            for name, prop, required in self.rows(path, schema, shown if len(sections) > 1 else ""):
                default = f"`{yaml(prop['default'])}`" if "default" in prop else ""
                example = f"`{yaml(prop['examples'][0])}`" if "examples" in prop else ""
                meaning = "not implemented" if prop.get("x-not-implemented") is True else prop.get("description", "")
                rows.append([f"**`{name}`**" if required else f"`{name}`", meaning, prop.get("x-default", default), example])
        columns = [i for i in range(4) if any(row[i] for row in rows)]
        lines = [["key", "meaning", "default", "example"], *rows]
        made = ["|" + "|".join(f" {line[i]} " if line[i] else " " for i in columns) + "|\n" for line in lines]
        return made[0] + "|" + "---|" * len(columns) + "\n" + "".join(made[1:])

    def made(self):
        """The page with its tables; afterwards `complaints` has what the schema or page lacks."""
        if not self.page.count(BEGIN) == self.page.count(END) == len(TABLE.findall(self.page)):
            raise SystemExit(f"{PAGE}: between {BEGIN}SECTION--> and {END} must be a table, and nothing else")
        page = TABLE.sub(lambda found: f"{BEGIN}{found['sections']}-->\n{self.table(found['sections'].split(','))}{END}", self.page)
        for path, given in self.keys("", self.schema):
            top, name = path.split(".")[0], path.split(".")[-1]
            if not self.resolved(given).get("description"):
                self.complaints.append(f"{SCHEMA}: {path} has no description")
            if top in ELSEWHERE and path != top:
                if not re.search(rf"\b{name}\b", (ROOT / ELSEWHERE[top]).read_text(encoding="utf-8")):
                    self.complaints.append(f"{ELSEWHERE[top]}: {path} is not on it")
            elif id(given) not in self.shown:
                self.complaints.append(f"{PAGE}: {path} is in no table")
        return page


def first_difference(old, new):
    old, new = old.splitlines() + ["the end"], new.splitlines() + ["the end"]
    for number, (has, must) in enumerate(zip(old, new), 1):
        if has != must:
            return f"{PAGE}:{number}: its tables are not those of {SCHEMA}: scripts/spec_doc.py --write\n  is   {has}\n  must {must}"
    return ""


def main():
    if sys.argv[1:] not in (["--write"], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    reference = Reference(json.loads((ROOT / SCHEMA).read_text(encoding="utf-8")), page)
    made = reference.made()
    if sys.argv[1] == "--write":
        (ROOT / PAGE).write_text(made, encoding="utf-8")
    elif made != page:
        reference.complaints.append(first_difference(page, made))
    for complaint in reference.complaints:
        print(complaint)
    return 1 if reference.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
