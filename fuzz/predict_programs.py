#!/usr/bin/env python3
"""Looks for false certificates: random programs, predicted by formulas and interpreted whole.

    fuzz/predict_programs.py build [--seconds 600] [--seed 1] [--keep FOLDER] [--affine | --related | --steps] [--repeat | --verify]
                             [--opt 0|1|2|3|all]

Each program mixes what misleads fits: counters that wrap, casts to narrow types, unions, state machines,
tables, tiles, early exits, nested calls. With --affine, each has plain nests whose sizes are within a few of a relation such
as n = 2 m + k, where ranges of one array begin to overlap. With --steps, each has nests by blocks that step by several. With --repeat, each is predicted by blocks, from the part of the run
that repeats (predict --method repeat), not by formulas. With --verify, each is predicted in the way that predict
chooses and compared with a recorded run of the compiled program, which shares nothing with the prediction but the
compiler. --opt all takes one level of optimization after the other. A prediction that says exact and differs from the run in any bin is
shrunk, statement by statement, and printed as a kernel for tests/hostile_kernels.txt. Exit status 1 when
there is any.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time

DIM = 700  # of every array: indices are kept within it


class Program:
    """A nest with state, as a tree of statements, so that it can be shrunk."""

    def __init__(self, rng):
        self.rng = rng
        self.n = rng.randint(60, 400)
        self.m = rng.choice([self.n, rng.randint(30, 300)])
        self.state = []  # (declaration, update, name, largest)
        self.helpers = []
        self.tables = []
        for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
            self.add_state()
        self.body = self.nest(0, [])

    def add_state(self):
        r = self.rng
        s = f"s{len(self.state)}"
        k = r.randint(3, 40)
        kind = r.randrange(15)
        if kind == 0:
            self.state.append((f"int {s}={r.randrange(k)};", f"if(++{s}=={k}){s}=0;", s, k))
        elif kind == 1:
            self.state.append((f"int {s}=1;", f"{s}=({s}*{r.randint(2, 9)}+{r.randint(0, 5)})%{k};", s, k))
        elif kind == 2:
            self.state.append((f"int {s}=0;", f"if(i%{r.randint(2, 7)}==0){s}++; if({s}>{k}){s}=0;", s, k + 1))
        elif kind == 3:
            self.state.append((f"unsigned char {s}={r.randrange(256)};", f"{s}+={r.randint(1, 60)};", s, 255))
        elif kind == 4:
            self.state.append((f"int {s}=0;", f"{s}={s}?0:{k};", s, k))
        elif kind == 5:
            self.state.append((f"int {s}=0;", f"switch({s}){{case 0:{s}=i&1?2:1;break;case 1:{s}=2;break;default:{s}=0;}}", s, 2))
        elif kind == 6:
            self.state.append((f"signed char {s}=0;", f"{s}=(signed char)(i*{r.randint(1, 3)}); if({s}<0){s}=-({s}+1);", s, 128))
        elif kind == 7:
            self.state.append((f"int {s}=0;", f"{s}=i>{r.randint(20, 300)}?{k}:0;", s, k))
        elif kind == 8:
            self.state.append((f"int {s}=0;", f"{{union{{int w;unsigned char c[4];}}u;u.w=i;{s}=u.c[{r.randrange(2)}];}}", s, 255))
        elif kind == 9:
            self.state.append((f"int {s}=0;", f"{s}=(i>>{r.randint(1, 7)})^(i&{r.randint(1, 15)});", s, 255))
        elif kind == 10:
            bits = r.randint(3, 7)
            self.state.append((f"struct{{unsigned v:{bits};}}b{s}={{0}};int {s}=0;", f"b{s}.v+={r.randint(1, 9)};{s}=b{s}.v;", s, 2 ** bits))
        elif kind == 11:
            self.state.append((f"unsigned {s}=1;", f"{s}=({s}>>1)^(-({s}&1u)&{r.choice([0xB8, 0x8E, 0x60, 0xE1])}u);", s, 255))
        elif kind == 12:
            self.state.append((f"int {s}=0,d{s}=1;", f"{s}+=d{s};if({s}=={k}||{s}==0)d{s}=-d{s};", s, k))
        elif kind == 13:
            self.state.append((f"float x{s}=0;int {s}=0;", f"x{s}+={r.choice(['0.5f', '0.25f', '0.1f', '1.0f'])};{s}=(int)x{s};", s, 420))
        else:
            self.state.append((f"static int {s};", f"if({s}++>{k}){s}=0;", s, k + 1))

    def nest(self, depth, counters):
        r = self.rng
        out = []
        for _ in range(r.choice([1, 1, 2, 2, 3]) if depth < 2 else r.choice([1, 2])):
            if depth < 1 or (depth < 3 and r.random() < 0.45):
                out.append(self.loop(depth, counters))
            elif r.random() < 0.15 and counters:
                out.append([f"if({self.condition(counters)}){{", self.nest(3, counters), "}"])
            elif r.random() < 0.1 and counters:
                out.append([f"if({self.condition(counters)})break;"])
            else:
                out.append([self.access(counters)])
        return out

    def loop(self, depth, counters):
        r = self.rng
        v = "ijkl"[depth]
        size = r.choice("nm")
        top = {"n": self.n, "m": self.m}[size]
        if depth >= 2:
            size, top = str(r.randint(3, 40)), 40
        kind = r.randrange(15)
        tail = "}"
        if kind == 0:
            head = f"for(int {v}={size}-1;{v}>=0;{v}--){{"
        elif kind == 1:
            head = f"for(int {v}={r.randint(0, 3)};{v}<{size};{v}+={r.randint(2, 4)}){{"
        elif kind == 2 and counters:
            w = r.choice(counters)[0]
            top = dict(counters)[w]
            head = f"for(int {v}=0;{v}<={w};{v}++){{"
        elif kind == 3 and counters:
            w = r.choice(counters)[0]
            head = f"for(int {v}={w};{v}<{size};{v}++){{"
        elif kind == 4 and counters:
            w, t = r.choice(counters)
            tile = r.choice([4, 8, 16])
            head = f"for(int {v}={w};{v}<{w}+{tile}&&{v}<{size};{v}++){{"
            top = max(top, t + tile)
        elif kind == 8:
            head = f"for(unsigned {v}={size};{v}-- >0;){{"
        elif kind == 9:
            head = f"for(long {v}=0;{v}!={size};{v}++){{if({v}==2*m-{r.randint(1, 9)})break;"
        elif kind == 10 and counters:
            w, t = r.choice(counters)
            head = f"for(unsigned short {v}={w};{v}<{size};{v}+={r.randint(1, 3)}){{"
        elif kind == 11:
            head, tail = f"{{int {v}=0;do{{", f"}}while(++{v}<{size});}}"
        elif kind == 12 and counters:
            w, t = r.choice(counters)
            head = f"for(int {v}={w}-{r.randint(1, 9)}<0?0:{w}-1;{v}<({w}+{r.randint(2, 9)}<{size}?{w}+2:{size});{v}++){{"
            top = max(top, t + 2)
        elif kind == 13:
            head = f"for(unsigned {v}={size}-1;{v}<(unsigned){size};{v}--){{"
        elif kind == 14:
            head = f"for({r.choice(['float', 'double'])} x{v}=0;x{v}<{size};x{v}+=1){{int {v}=x{v};"
        elif kind == 5:
            head = f"for(int {v}=0;{v}<{size}-{r.randint(1, 5)};{v}++){{"
        else:
            head = f"for(int {v}=0;{v}<{size};{v}++){{"
        inner = counters + [(v, top)]
        body = []
        if depth == 0:
            body = [[u] for _, u, _, _ in self.state]
        return [head, body + self.nest(depth + 1, inner), tail]

    def term(self, counters):
        r = self.rng
        names = list(counters)
        if counters and counters[0][0] == "i":
            names += [(s, most) for _, _, s, most in self.state]
        if not names:
            return str(r.randint(0, 9)), 9
        v, top = r.choice(names)
        kind = r.randrange(16)
        if kind == 12:
            return f"({v}*m/n)" if r.random() < 0.5 else f"({v}/(m/20+1))", top * 5
        if kind == 13:
            return f"((unsigned)({v}-m)<{r.randint(2, 40)}u?3:{v})", top
        if kind == 14:
            return f"(short)({v}*{r.randint(90, 200)})%50+50", 100
        if kind == 15:
            return f"({v}<m-{r.randint(1, 30)}?{v}:m)", max(top, 300)
        if kind == 0:
            k = r.randint(2, 9)
            return f"({v}%{k})", k
        if kind == 1:
            k = r.randint(2, 9)
            return f"({v}/{k})", top // k + 1
        if kind == 2:
            return f"(unsigned char)({v}*{r.randint(1, 3)})", 255
        if kind == 3 and top * 2 < DIM:
            return f"({v}*2)", top * 2
        if kind == 4:
            k = r.choice([1, 3, 7, 15])
            return f"({v}&{k})", k
        if kind == 5:
            return f"({v}>{r.randint(3, 200)}?{v}:0)", top
        if kind == 6:
            k = r.choice([4, 8, 16])
            t = len(self.tables)
            self.tables.append(f"static const int T{t}[{k}]={{{','.join(str(r.randint(0, 30)) for _ in range(k))}}};")
            return f"T{t}[{v}%{k}]", 30
        if kind == 7:
            h = len(self.helpers)
            k = r.randint(2, 50)
            self.helpers.append(f"static __attribute__((noinline)) int h{h}(int x){{{r.choice([f'return x<{k}?x:{k};', f'int y=0;while(y*y<x)y++;return y;', f'return x-x%{k};', f'int c=0;for(int q=x;q>0;q/=2)c++;return c;'])}}}")
            return f"h{h}({v})", max(top, k)
        return v, top

    def index(self, counters):
        r = self.rng
        a, top = self.term(counters)
        if r.random() < 0.3:
            b, more = self.term(counters)
            if top + more < DIM:
                a, top = f"{a}+{b}", top + more
        if top >= DIM:
            return str(r.randint(0, 9))
        if r.random() < 0.3 and top + 9 < DIM:
            a = f"{a}+{r.randint(1, 9)}"
        return a

    def condition(self, counters):
        r = self.rng
        a, _ = self.term(counters)
        b = r.choice([self.term(counters)[0], str(r.randint(0, 60)), "n/2", "m-3"])
        return f"{a}{r.choice(['<', '>', '==', '<=', '!='])}{b}"

    def access(self, counters):
        r = self.rng
        if r.random() < 0.08:
            return f"{{double*p=A+{self.index(counters)},*q=A+{self.index(counters)};*p+=*q;if(p-A>{r.randint(3, 300)})B[q-A]+=1;}}"
        if r.random() < 0.06:
            return f"S[{self.index(counters)}]=S[{self.index(counters)}];"
        if r.random() < 0.06:
            return f"K[{self.index(counters)}]+=K[{self.index(counters)}];"
        if r.random() < 0.05:
            return f"__builtin_memcpy(C+({self.index(counters)})%500,B+({self.index(counters)})%500,8*(1+{r.choice(['m/4', '3', 'n%5'])}));"
        if r.random() < 0.45:
            return f"{r.choice('ABC')}[{self.index(counters)}]+=1;"
        return f"{r.choice('PQ')}[{self.index(counters)}][{self.index(counters)}]+=1;"

    @staticmethod
    def text_of(part):
        return part if isinstance(part, str) else "".join(Program.text_of(p) for p in part)

    def text(self):
        used = "".join(d for d, _, _, _ in self.state)
        return ("double A[%d],B[%d],C[%d],P[%d][%d],Q[%d][%d];\n" % ((DIM,) * 7) +
                "struct{double x,y,z;}S[%d];char K[%d];\n" % (DIM, DIM) + "\n".join(self.tables) + "\n" +
                "\n".join(self.helpers) + "\nvoid f(int n,int m){" + used + self.text_of(self.body) + "}\n")

    def shrunk(self):
        """Programs with one part less."""
        def without(part):
            if isinstance(part, str):
                return
            for k, p in enumerate(part):
                if isinstance(p, list):
                    yield part[:k] + part[k + 1:]
                    for inner in without(p):
                        yield part[:k] + [inner] + part[k + 1:]
        for body in without(self.body):
            smaller = object.__new__(type(self))
            smaller.__dict__.update(self.__dict__)
            smaller.body = body
            yield smaller


class Affine(Program):
    """Nests over one array or two, with sizes near a relation that no comparison shows."""

    STEPS = [(1, 0), (0, 1), (1, 1), (2, 1), (1, 2), (1, -1), (2, 0), (0, 3)]

    def __init__(self, rng):
        self.rng = rng
        self.state, self.helpers, self.tables = [], [], []
        self.m = rng.randint(40, 160)
        self.k = rng.choice([rng.randint(20, 160), self.m + rng.randint(-4, 4)])
        near = rng.choice([self.m + self.k, 2 * self.m, 2 * self.m + self.k, self.m + 2 * self.k, 3 * self.m - self.k,
                           (self.m + self.k) // 2, self.m, 2 * self.k - self.m])
        self.n = max(20, near + rng.randint(-5, 5))
        self.body = [self.piece() for _ in range(rng.choice([1, 2, 2, 3]))]

    def piece(self):
        r = self.rng
        outer, inner = r.choice("nmk"), r.choice("nmk")
        a, b = r.choice(self.STEPS)
        shift = r.choice(["", "", "+m", "+k", f"+{r.randint(1, 9)}", "+n"])
        lowest = f"+{b * -1}*{inner}" if b < 0 else ""
        index = f"{a}*i+{b}*j{shift}{lowest}" if b >= 0 else f"{a}*i-j{shift}+{inner}"
        head = r.choice([f"for(int j=0;j<{inner};j++)", f"for(int j=i;j<{inner};j++)", f"for(int j=0;j<{inner}&&j<=i;j++)"])
        name = r.choice("AAB")
        second = r.choice(["", f"{r.choice('AB')}[{r.choice('ij')}+{r.choice(['0', 'm', 'k'])}]+=1;"])
        guard = r.choice(["", "", f"if({r.choice(['i+j<n', '2*i<m+k', 'i+k<n+j', 'j<m'])})"])
        return [f"for(int i=0;i<{outer};i++)", [head, ["{", [f"{guard}{name}[{index}]+=1;"], [second], "}"]]]

    def text(self):
        return "double A[9000],B[9000];\nvoid f(int n,int m,int k){" + self.text_of(self.body) + "}\n"


class Related(Affine):
    """The same with larger steps, and sizes near p n = q m + r k: rows and halves of an array that begin to overlap."""

    STEPS = [(a, b) for a in range(8) for b in range(8) if a + b > 1] + [(a, -1) for a in range(2, 8)]

    def __init__(self, rng):
        super().__init__(rng)
        p, q, r = rng.randint(1, 7), rng.randint(0, 7), rng.randint(0, 4)
        self.n = min(400, max(20, (q * self.m + r * self.k + rng.randint(-9, 9)) // p))
        if rng.random() < 0.3:
            self.k = self.n + rng.randint(-3, 3)


class Stepped(Program):
    """Nests by blocks whose loops step by several: sizes that meet such a counter must keep its residues, others need not."""

    def __init__(self, rng):
        self.rng = rng
        self.helpers, self.tables, self.state = [], [], []
        self.n, self.m = rng.randint(60, 220), rng.randint(60, 220)
        self.macros = rng.random() < 0.5
        if rng.random() < 0.6:
            self.m = self.m // 8 * 8
            self.n = self.n // 8 * 8 if rng.random() < 0.5 else self.n
        inner = rng.choice(["600", "600", "n+m", "n+m", "m+8"] if self.macros else ["600", "600", "600", "605"])
        self.head = f"double P[600][{inner}],R[600][600];float Q[600][600];double K[900];\n"
        self.steps = rng.choices([1, 2, 3, 4, 5, 6, 7], k=2) + [1]
        self.plain = rng.random() < 0.7
        self.body = [self.nest() for _ in range(rng.choice([1, 2, 2, 3]))]

    def loop(self, name, outer):
        r = self.rng
        if self.plain:
            return f"for(int {name}={r.choice('0001')};{name}<{r.choice('nm')};{name}+={r.choice(self.steps)})"
        low = r.choice(["0", "0", "0", str(r.randint(1, 9)), *([f"{outer}", f"{outer}+1"] if outer else []), "m/4", "n-40"])
        top = r.choice(["n", "n", "m", "m", "n-1", "m-2", *([f"{outer}"] if outer else []), "(n<m?n:m)", "n/2"])
        return f"for(int {name}={low};{name}<{top};{name}+={r.choice(self.steps)})"

    def nest(self):
        r = self.rng
        inner = ["{", *[[self.statement()] for _ in range(r.choice([1, 1, 2, 3]))], "}"]
        if r.random() < 0.3:
            return [self.loop("j", ""), [self.loop("i", "j"), inner]]
        return [self.loop("i", ""), [self.loop("j", "i" if r.random() < 0.3 else ""), inner]]

    def statement(self):
        r = self.rng
        def index():
            return r.choice(["i", "j", "i", "j", "i", "j", "0", "3"] if self.plain else ["i", "j", "i", "j", "i+1", "j+2", "0", "i+j", "(i<m?i:j)", "i/2", "2*j"])
        guard = "" if self.plain else r.choice(["", "", "", "if(i<m)", "if(j<n-9)", "if(i+j<n)"])
        return guard + r.choice([f"{r.choice('PPPRQ')}[{index()}][{index()}]+=1;", f"P[{index()}][j]+=P[i][{index()}];", f"K[{index()}]+=1;"])

    def text(self):
        return self.head + f"void f({'void' if self.macros else 'int n,int m'}){{" + self.text_of(self.body) + "}\n"


class Repeated(Program):
    """Loops one after the other, whose iterations come again, moved on, after a few others; or nearly so."""

    STATES = [("int {s}=0;", "if(++{s}=={k}){s}=0;"), ("int {s}=1;", "{s}=({s}*3+1)%{k};"), ("int {s}=0;", "{s}={s}?0:{k};"),
              ("int {s}=0;", "{s}=i>{k}?1:0;"), ("int {s}=0,d{s}=1;", "{s}+=d{s};if({s}=={k}||{s}==0)d{s}=-d{s};"),
              ("unsigned char {s}=0;", "{s}+={odd};")]

    def __init__(self, rng):
        self.rng = rng
        self.helpers, self.tables, self.state = [], [], []
        self.n = rng.randint(60, 230)
        self.m = rng.choice([self.n, rng.randint(20, 90)])
        for s in ["s0", "s1"][:rng.choice([0, 0, 0, 1, 1, 2])]:
            first, update = (t.format(s=s, k=rng.randint(2, 9), odd=rng.choice([32, 64, 96, 128, 7])) for t in rng.choice(self.STATES))
            self.state.append((first, update, s, 255))
        self.body = [self.outer() for _ in range(rng.choice([1, 2, 2, 3, 4]))]
        if rng.random() < 0.3:
            self.body.insert(0, [f"for(int i=0;i<{rng.choice('nm')};i++){{", [[f"{self.place('i', '3')}+=1;"]], "}"])

    def outer(self):
        r = self.rng
        head = r.choice(["for(int i=0;i<n;i++){", "for(int i=0;i<n;i++){", "for(int i=n-1;i>=0;i--){", "for(int i=2;i<2*n;i+=2){",
                         "for(long i=0;i!=n-1;i++){", "for(unsigned i=n;i-- >1;){", f"for(int i=0;i<n;i++){{if(i==n-{r.randint(1, 30)})break;"])
        updates = [[u] for _, u, _, _ in self.state if r.random() < 0.7]
        return [head, updates + [self.part() for _ in range(r.choice([1, 2, 2, 3]))], "}"]

    def part(self):
        r = self.rng
        guard = r.choice(["", "", "", f"if(i%{r.choice([2, 3, 4, 8])}=={r.randrange(2)})", f"if(i<{r.randint(1, 9)})",
                          f"if(i>n-{r.randint(1, 9)})", *(f"if({s}=={r.randrange(3)})" for _, _, s, _ in self.state)])
        if r.random() < 0.25:
            return [guard + "{", [[f"{self.place('i', r.choice('037'))}+=1;"]], "}"]
        top = r.choice(["m", str(r.randint(5, 60)), str(r.randint(5, 60)), "i%8+9"])
        head = r.choice([f"for(int j=0;j<{top};j++){{", f"for(int j={r.randint(0, 9)};j<{top}+9;j++){{", f"for(int j={top};j>0;j-=2){{"])
        return [guard + head, [[f"{self.place('i', 'j')}+={self.place('i', 'j')};"] for _ in range(r.choice([1, 1, 2, 3]))], "}"]

    def place(self, i, j):
        r = self.rng
        moving = r.choice([i, i, f"({i}+{r.randint(1, 12)})", f"({i}/2)", f"(2*{i})", f"({i}&-4)", f"(300-{i}/2)"])
        states = [s for _, _, s, _ in self.state]
        fixed = r.choice([j, j, str(r.randint(0, 60)), f"({j}+{r.randint(1, 9)})", *states])
        return r.choice([f"{r.choice('PQR')}[{moving}][{fixed}]", f"{r.choice('PQR')}[{fixed}][{moving}]", f"{r.choice('PQR')}[{j}][{fixed}]",
                         f"A[{moving}*{r.choice([1, 4, 8, 16])}+{fixed}]", f"{r.choice('AK')}[{fixed}]", f"K[{moving}]"])

    def text(self):
        declared = "".join(d for d, _, _, _ in self.state)
        return ("double A[9000],P[600][600],R[600][600];float Q[600][600];char K[9000];\nvoid f(int n,int m){" + declared +
                self.text_of(self.body) + "}\n")


def predict(build, path, program, granularity, method, opt):
    more = ["--param", f"k={program.k}"] if isinstance(program, Affine) else []
    given = "-D" if getattr(program, "macros", False) else "--param"
    done = subprocess.run(
        [f"{build}/revisit", "predict", path, "--function", "f", *more, given, f"n={program.n}", given,
         f"m={program.m}", "--granularity", str(granularity), "--bins", "exact", "--method", method, "--json",
         "--budget", "6", "--opt", opt] + (["--only-exact"] if method == "fit" else []) +
        (["--verify"] if method == "auto" else []),
        capture_output=True, text=True, timeout=120, check=False)
    if done.returncode not in (0, 1, 2):
        return {"crash": done.returncode, "stderr": done.stderr}
    try:
        return json.loads(done.stdout)
    except ValueError:
        return None


def is_false(build, path, program, granularity, opt, verify, method):
    """None: no certificate; False: it holds; True: it is false."""
    with open(path, "w", encoding="utf-8") as out:
        out.write(program.text())
    try:
        if verify:
            checked = predict(build, path, program, granularity, "auto", opt)
            if checked and "crash" in checked:
                return True
            if not checked or not checked.get("exact"):
                return None
            return not any(n.endswith("is equal in every bin") for n in checked["notes"])
        fitted = predict(build, path, program, granularity, method, opt)
        if fitted and "crash" in fitted:
            return True
        if not fitted or not fitted.get("exact"):
            return None
        truth = predict(build, path, program, granularity, "simulate", opt)
    except subprocess.TimeoutExpired:
        return None
    return bool(truth) and (truth["reuse"] != fitted["reuse"] or truth["accesses"] != fitted["accesses"])


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("build")
    options.add_argument("--seconds", type=float, default=600)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--keep", help="write programs that are called exact and are not into this folder")
    options.add_argument("--affine", action="store_true", help="plain nests with sizes near a relation")
    options.add_argument("--related", action="store_true", help="the same with larger factors")
    options.add_argument("--steps", action="store_true", help="by blocks, loops that step by several")
    options.add_argument("--repeat", action="store_true", help="by blocks, from the part of the run that repeats")
    options.add_argument("--opt", default="1", choices=["0", "1", "2", "3", "s", "all"])
    options.add_argument("--verify", action="store_true", help="compare with recorded runs")
    args = options.parse_args()
    end = time.time() + args.seconds
    tried = exact = wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "f.c")
        seed = args.seed
        while time.time() < end:
            kind = Related if args.related else Affine if args.affine else Stepped if args.steps else Repeated if args.repeat else Program
            program = kind(random.Random(seed))
            granularity = 64 if seed % 4 == 0 or args.steps else (16, 32, 64, 64)[seed % 4] if args.repeat else 1
            opt = "0123"[seed // 4 % 4] if args.opt == "all" else args.opt
            method = "repeat" if args.repeat else "fit"
            verdict = is_false(args.build, path, program, granularity, opt, args.verify, method)
            tried += 1
            exact += verdict is not None
            if verdict:
                wrong += 1
                smaller = True
                while smaller and time.time() < end:
                    smaller = next((s for s in program.shrunk() if is_false(args.build, path, s, granularity, opt, args.verify, method)), None)
                    program = smaller or program
                text = f"## random{seed} n={program.n} m={program.m} {f'k={program.k} ' if args.affine or args.related else ''}" \
                       f"granularity={granularity} opt={opt}\n{program.text()}"
                print(text, flush=True)
                if args.keep:
                    os.makedirs(args.keep, exist_ok=True)
                    with open(f"{args.keep}/random{seed}.c", "w", encoding="utf-8") as out:
                        out.write(text)
            if tried % 25 == 0:
                print(f"{tried} programs, {exact} called exact, {wrong} wrongly", file=sys.stderr, flush=True)
            seed += 1
    print(f"{tried} programs, {exact} called exact {'by repetition' if args.repeat else 'by formulas'}, {wrong} wrongly")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
