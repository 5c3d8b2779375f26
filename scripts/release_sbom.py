#!/usr/bin/env python3
"""What is in the archive of scripts/release.sh, and what is linked into it, as SPDX 2.3: on standard output.

Nothing is listed by hand: libraries come from the linker's maps, headers from the compiler's dependencies, and their packages, versions and
licences from dpkg. Copies the licences into a folder. Fails when a file of the system belongs to no package, or one has no licence.
"""
import argparse
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse

DOCUMENT = "SPDXRef-DOCUMENT"


def digest(path, algorithm="sha256"):
    return hashlib.new(algorithm, pathlib.Path(path).read_bytes()).hexdigest()


def spdx_id(kind, name):
    return f"SPDXRef-{kind}-" + re.sub(r"[^A-Za-z0-9.-]", "-", name.replace("+", "plus"))


def linked_by(map_file):
    """Paths of the system's archives and objects of which something is in the program."""
    found = set()
    for line in open(map_file, encoding="utf-8", errors="replace"):
        part = re.match(r"(/usr/\S+\.a)\(", line) or re.match(r"LOAD (/usr/\S+\.o)$", line)
        if part:
            found.add(os.path.realpath(part[1]))
    return found


def headers_of(deps_file):
    """Headers of the system that were compiled into anything but tests."""
    found, wanted = set(), False
    for line in open(deps_file, encoding="utf-8"):
        if line.startswith("    "):
            path = line.strip()
            if wanted and path.startswith("/usr/"):
                found.add(os.path.realpath(path))
        elif line.strip():
            wanted = "muster_archive_tests" not in line
    return found


def packages_of(paths):
    """path -> Debian package; dpkg may know it under its place before /usr was merged."""
    out = {}
    asked = sorted(paths)
    for prefix in ("", "/usr"):
        rest = [path for path in asked if path not in out]
        names = [path[len(prefix):] for path in rest]
        if not rest:
            break
        said = subprocess.run(["dpkg", "-S", *names], capture_output=True, text=True, check=False).stdout
        for line in said.splitlines():
            package, _, place = line.partition(": ")
            if not package.startswith("diversion "):
                out.setdefault(prefix + place, package.split(",")[0].split(":")[0])
    missing = [path for path in asked if path not in out]
    if missing:
        sys.exit("release_sbom.py: of no package: " + " ".join(missing[:5]))
    return out


def version_of(package):
    fields = "${Version} ${source:Package} ${source:Version}\n"
    said = subprocess.run(["dpkg-query", "-W", "-f", fields, package], capture_output=True, text=True, check=True)
    return said.stdout.splitlines()[0].split()


class Document:
    def __init__(self, version, epoch, root, licences):
        self.root, self.licences, self.version = pathlib.Path(root), pathlib.Path(licences), version
        created = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.out = {
            "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": DOCUMENT, "name": f"muster-{version}-linux-x86_64",
            "documentNamespace": f"urn:muster:spdx:{version}",
            "creationInfo": {"created": created, "creators": ["Tool: scripts/release_sbom.py of muster"]},
            "packages": [], "files": [], "relationships": [], "hasExtractedLicensingInfos": []}
        self.muster = self.package("muster", version, "", self.licence("muster", self.root / "share/doc/muster/LICENSE"))
        self.relate(DOCUMENT, "DESCRIBES", self.muster)

    def relate(self, one, how, other):
        self.out["relationships"].append({"spdxElementId": one, "relationshipType": how, "relatedSpdxElement": other})

    def licence(self, name, path):
        if not path.is_file():
            sys.exit(f"release_sbom.py: no licence of {name}: {path}")
        reference = spdx_id("x", name).replace("SPDXRef-x-", "LicenseRef-")
        text = path.read_text(encoding="utf-8", errors="replace")
        self.out["hasExtractedLicensingInfos"].append({"licenseId": reference, "name": f"licence of {name}", "extractedText": text})
        return reference

    def package(self, name, version, source, licence, used=""):
        entry = {"SPDXID": spdx_id("Package", name), "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION",
                 "filesAnalyzed": False, "licenseConcluded": "NOASSERTION", "licenseDeclared": licence, "copyrightText": "NOASSERTION"}
        if source:
            entry["supplier"] = "Organization: Debian"
            entry["sourceInfo"] = f"Debian source package {source}"
            place = "/".join(["pkg:deb", "debian", urllib.parse.quote(name)]) + "@" + urllib.parse.quote(version) + "?arch=amd64"
            entry["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": place}]
        if used:
            entry["comment"] = used
        self.out["packages"].append(entry)
        return entry["SPDXID"]

    def files(self):
        """Every file of the archive, which all belong to the package muster; path -> id."""
        found = {}
        for path in sorted(p for p in self.root.rglob("*") if p.is_file() and not p.is_symlink()):
            name = "./" + str(path.relative_to(self.root))
            sums = [{"algorithm": a, "checksumValue": digest(path, a.lower())} for a in ("SHA1", "SHA256")]
            found[name] = spdx_id("File", name[2:])
            self.out["files"].append({"SPDXID": found[name], "fileName": name, "checksums": sums, "licenseConcluded": "NOASSERTION",
                                      "licenseInfoInFiles": ["NOASSERTION"], "copyrightText": "NOASSERTION"})
            self.relate(self.muster, "CONTAINS", found[name])
        return found


def add_linked(document, build, deps, files):
    """Packages of which code is in a program."""
    programs = {path: linked_by(f"{build}/{os.path.basename(path)}.map") for path in files
                if os.path.isfile(f"{build}/{os.path.basename(path)}.map") and path.startswith(("./bin/", "./lib/muster/"))}
    headers = headers_of(deps)
    if not programs or not headers or not all(programs.values()):
        sys.exit("release_sbom.py: the build left no maps or no dependencies")
    owner = packages_of(headers.union(*programs.values()))
    for name in sorted(set(owner.values())):
        version, source, source_version = version_of(name)
        linked = sorted(path for path in set().union(*programs.values()) if owner[path] == name)
        used = [f"{digest(path)}  {path}" for path in linked]
        if not linked:
            listed = "\n".join(f"{digest(path)}  {path}" for path in sorted(headers) if owner[path] == name)
            used = [f"headers only; SHA-256 of the list of the digests of those used: {hashlib.sha256(listed.encode()).hexdigest()}"]
        text = pathlib.Path(f"/usr/share/doc/{name}/copyright")
        entry = document.package(name, version, f"{source} {source_version}", document.licence(name, text), "\n".join(used))
        (document.licences / name).write_bytes(text.read_bytes())
        for path, own in sorted(programs.items()):
            if any(owner[one] == name for one in own):
                document.relate(files[path], "STATIC_LINK", entry)
        if not linked:
            document.relate(document.muster, "DEPENDS_ON", entry)


def add_carried(document, build, files):
    """Debian's programs that are in the archive as they are."""
    listed = pathlib.Path(f"{build}/perftest/packages")
    inside = [path for path in files if path.startswith("./lib/muster/perftest/")]
    if not inside:
        return
    of = {"ib_write_bw": "perftest", "ib_write_lat": "perftest", "librdmacm": "librdmacm1", "libpci": "libpci3"}
    for line in listed.read_text().splitlines():
        name, version, source, source_version = line.split()
        licence = document.licence(name, document.licences / name)
        entry = document.package(name, version, f"{source} {source_version}", licence, "unchanged")
        for path in inside:
            if of[os.path.basename(path)] == name:
                document.relate(entry, "CONTAINS", files[path])


def main():
    parser = argparse.ArgumentParser()
    for option in ("build", "deps", "root", "version", "licences"):
        parser.add_argument(f"--{option}", required=True)
    given = parser.parse_args()
    document = Document(given.version, int(os.environ["SOURCE_DATE_EPOCH"]), given.root, given.licences)
    carried = {path for path in pathlib.Path(given.root).glob("lib/muster/perftest/*")}
    programs = {"./" + str(path.relative_to(given.root)): "" for path in pathlib.Path(given.root).rglob("*") if path.is_file() and path not in carried}
    # Licences are written before files are listed: they are files of the archive.
    identifiers = {path: spdx_id("File", path[2:]) for path in programs}
    add_linked(document, given.build, given.deps, identifiers)
    files = document.files()
    add_carried(document, given.build, files)
    json.dump(document.out, sys.stdout, indent=1, sort_keys=False)
    print()


if __name__ == "__main__":
    main()
