#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks for the system's parts that the build needs and installs those that are missing where that needs no password.
# Anywhere else it prints the one command and stops; it never upgrades or removes anything.
set -eu
python=$1
missing=

has_header() { printf '#include <%s>\n' "$1" | "${CXX:-c++}" -x c++ -fsyntax-only - 2>/dev/null; }
command -v "${CXX:-c++}" >/dev/null || missing="$missing g++"
command -v cmake >/dev/null || missing="$missing cmake"
command -v ninja >/dev/null || missing="$missing ninja-build"
if command -v "${CXX:-c++}" >/dev/null; then
  has_header zlib.h || missing="$missing zlib1g-dev"
  has_header zstd.h || missing="$missing libzstd-dev"
  has_header gtest/gtest.h || missing="$missing libgtest-dev"
  has_header sleef.h || missing="$missing libsleef-dev"
else
  missing="$missing zlib1g-dev libzstd-dev libgtest-dev libsleef-dev"
fi
"$python" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' || missing="$missing python3-dev"
"$python" -c 'import ensurepip' 2>/dev/null || missing="$missing python3-venv"
[ -z "$missing" ] && exit 0

if [ "$(id -u)" = 0 ]; then
  sudo=
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
  sudo="sudo -n"
else
  sudo=no
fi
if [ "$sudo" = no ] || ! command -v apt-get >/dev/null; then
  printf 'the build needs:%s\ninstall them, then run make again:\n\n  sudo apt-get install -y%s\n\n' "$missing" "$missing" >&2
  exit 1
fi
echo "installing$missing"
install() { DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null; }
install 2>/dev/null || { $sudo apt-get update -qq && install; }
