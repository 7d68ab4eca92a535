"""A fresh root to try things in as on a new machine, by chroot: what try-container, try-packages and try-ci share.

Made by debootstrap, once per release: FOLDER/RELEASE.tar keeps it. Machine set-up that a network needs (name server,
certificates, apt settings) is taken over from this machine. Needs to be root.
"""
import glob, os, pathlib, shutil, subprocess, sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8",
               "DEBIAN_FRONTEND": "noninteractive"}


class Root:
    """with Root(folder, "trixie") as root: root.sh("apt-get update")      gone afterwards, unless keep"""

    def __init__(self, folder, release, name=None, keep=False):
        self.folder, self.release, self.keep = pathlib.Path(folder).resolve(), release, keep
        self.place = self.folder / (name or release)

    def __enter__(self):
        if self.place.exists():
            sys.exit(f"{sys.argv[0]}: {self.place} exists")
        clean = self.folder / f"{self.release}.tar"
        if not clean.exists():
            made = self.folder / f"{self.release}-bootstrap"
            subprocess.run(["debootstrap", "--variant=minbase", self.release, made], check=True, stdout=subprocess.DEVNULL)
            subprocess.run(["tar", "-C", made, "-cf", clean, "."], check=True)
            shutil.rmtree(made)
        self.place.mkdir(parents=True)
        subprocess.run(["tar", "-C", self.place, "-xf", clean], check=True)
        for file in ["/etc/resolv.conf", *glob.glob("/etc/apt/apt.conf.d/99*"), "/etc/ssl/certs/ca-certificates.crt"]:
            if os.path.exists(file):
                (self.place / file[1:]).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, self.place / file[1:])
        for name in ("proc", "sys", "dev"):
            at = str(self.place / name)
            subprocess.run(["mount", "--rbind" if name != "proc" else "--bind", "/" + name, at], check=True)
            subprocess.run(["mount", "--make-rslave", at], check=True)
        return self

    def __exit__(self, *_):
        self.unmount()
        if not self.keep:
            shutil.rmtree(self.place, ignore_errors=True)

    def unmount(self):
        for name in ("proc", "sys", "dev"):
            subprocess.run(["umount", "-R", "-l", str(self.place / name)], stderr=subprocess.DEVNULL)

    def run(self, *arguments, environment=None, quiet=False):
        """The exit status of a command in the root; its output is shown, if quiet only where it fails."""
        done = subprocess.run(["chroot", self.place, *arguments], env={**ENVIRONMENT, **(environment or {})}, text=True,
                              stdout=subprocess.PIPE if quiet else None, stderr=subprocess.STDOUT if quiet else None)
        if quiet and done.returncode != 0:
            print(done.stdout[-6000:])
        return done.returncode

    def sh(self, script, status=0, quiet=False, **options):
        """Ends the whole run where the script ends with another status."""
        found = self.run("sh", "-ec", script, quiet=quiet, **options)
        if found != status:
            sys.exit(f"{sys.argv[0]}: in a fresh {self.release}, status {found} instead of {status}: {script}")

    def copy_source(self, to):
        """The files of this checkout, as git knows them."""
        listed = subprocess.run(["git", "-C", SOURCE, "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True, check=True).stdout
        names = b"\0".join(name for name in listed.split(b"\0") if name and (SOURCE / os.fsdecode(name)).exists())
        packed = subprocess.run(["tar", "-C", SOURCE, "-c", "--null", "-T", "-"], input=names, capture_output=True, check=True).stdout
        (self.place / to[1:]).mkdir(parents=True, exist_ok=True)
        subprocess.run(["tar", "-C", self.place / to[1:], "-x"], input=packed, check=True)
