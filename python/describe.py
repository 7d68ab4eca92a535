"""Tells CMake about the python3 that runs it: itself, its headers, how its modules end, where they go.

Fails when there is no numpy or there are no headers. The folder is relative to an install prefix; Debian's
python3 looks for modules of /usr/local in dist-packages, others in site-packages.
"""
import os, site, sys, sysconfig

import numpy  # noqa: F401

include = sysconfig.get_path("include")
assert os.path.exists(os.path.join(include, "Python.h"))
local = [path for path in site.getsitepackages() if path.startswith("/usr/local/lib/")]
folder = os.path.relpath(local[0], "/usr/local") if local else f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
print(";".join([sys.executable, include, sysconfig.get_config_var("EXT_SUFFIX"), folder]))
