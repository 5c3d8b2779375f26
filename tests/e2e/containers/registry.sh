# shellcheck shell=bash
# A registry of images for a test, with a login, a proxy and a mirror: registry.py says which. Sourced after lib.sh.
registry_files() {   # registry_files FOLDER: its certificate, its only program, and `login`, as an engine reads it
  mkdir -p "$1"
  openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=registry.example -addext subjectAltName=DNS:registry.example \
    -keyout "$1/key.pem" -out "$1/cert.pem" 2>/dev/null
  echo 'int puts(const char *); int main(void) { return puts("pulled") < 0; }' | gcc -static -Os -x c -o "$1/program" -
  printf '{"auths":{"registry.example":{"auth":"%s"}}}' "$(printf ops:open-sesame | base64)" >"$1/login"
}
registry_begins() {   # registry_begins FOLDER ADDRESS [COMMAND-IN-THE-LAB...]: sets registry, the process
  local folder=$1 address=$2
  shift 2
  "$@" python3 tests/e2e/containers/registry.py "$folder" "$address" >>"$folder/errors" 2>&1 &
  registry=$!
}
