"""Random programs: text of functions that Python can run and the language can trace."""

from random import Random

NAMES = ("a", "b", "c")


class Programs:
    """Writes one random function of a real `x` and an integer `n` after another."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def text(self) -> str:
        self._left = 24
        self._indices: list[str] = []
        body = ["a = x", "b = 1.5", "c = 0", "q = [x, 1]", "r = q", *self._block(0, in_loop=False)]
        body += ["return a + b * 2.0 + c + q[0] + q[1] * 3.0 + r[0] - r[1]"]
        return "def program(x: Scalar, n: Int32) -> Scalar:\n" + "\n".join("    " + line for line in body) + "\n"

    def _block(self, depth: int, in_loop: bool) -> list[str]:
        lines = []
        for _ in range(self._random.randint(1, 4)):
            self._left -= 1
            lines += self._statement(depth, in_loop)
        return lines

    def _statement(self, depth: int, in_loop: bool) -> list[str]:
        simple = depth >= 3 or self._left < 0
        kind = self._random.random()
        if simple or kind < 0.4:
            return [self._assignment()]
        if kind < 0.65:
            return self._if(depth, in_loop)
        if kind < 0.85:
            return self._for(depth)
        if kind < 0.93 and in_loop:
            return [f"if {self._bool()}:", f"    {self._random.choice(('break', 'continue'))}"]
        if kind < 0.96:
            return [f"if {self._bool()}:", f"    return {self._real(1)}"]
        return self._while(depth)

    def _assignment(self) -> str:
        kind = self._random.random()
        if kind < 0.7:
            return f"{self._random.choice(NAMES)} = {self._real(2)}"
        if kind < 0.8:
            return f"a, b = b, {self._real(1)}"
        if kind < 0.85:
            return self._random.choice(("r = q", "r = list(q)", "q = [q[1], q[0]]"))
        target = f"{self._random.choice('qr')}[{self._random.choice('01')}]"
        return f"{target} {self._random.choice(('=', '+='))} {self._real(1)}"

    def _if(self, depth: int, in_loop: bool) -> list[str]:
        lines = [f"if {self._bool()}:", *self._indented(self._block(depth + 1, in_loop))]
        if self._random.random() < 0.5:
            lines += ["else:", *self._indented(self._block(depth + 1, in_loop))]
        if in_loop and self._random.random() < 0.3:
            lines += [
                f"if {self._bool()}:",
                f"    {self._real(1)}",
                f"    {self._random.choice(('break', 'continue'))}",
            ]
        return lines

    def _for(self, depth: int) -> list[str]:
        index = f"i{depth}"
        over = self._random.choice(("range(3)", "range(17)", "range(n)", "range(n, 0, -2)", "range(1, n)", "(0, 2)"))
        self._indices.append(index)
        lines = [f"for {index} in {over}:", *self._indented(self._block(depth + 1, in_loop=True))]
        self._indices.pop()
        lines += self._indented([f"a = a + {index}"])
        if self._random.random() < 0.3:
            lines += ["else:", *self._indented([f"b = {self._real(1)}"])]
        return lines

    def _while(self, depth: int) -> list[str]:
        count = f"k{depth}"
        body = [f"{count} = {count} + 1", *self._block(depth + 1, in_loop=True)]
        return [f"{count} = 0", f"while {count} < {self._random.choice(('n', '4'))}:", *self._indented(body)]

    def _indented(self, lines: list[str]) -> list[str]:
        return ["    " + line for line in lines]

    def _real(self, depth: int) -> str:
        kind = self._random.random()
        if depth == 0 or kind < 0.3:
            return self._random.choice((*NAMES, "x", "n", "0.25", "-3", "2", "q[0]", "r[1]", *self._indices))
        if kind < 0.75:
            return f"({self._real(depth - 1)} {self._random.choice('+-*')} {self._real(depth - 1)})"
        if kind < 0.85:
            return f"hm.sin({self._real(depth - 1)})"
        return f"({self._real(depth - 1)} if {self._bool()} else {self._real(depth - 1)})"

    def _bool(self) -> str:
        left, right = self._real(1), self._real(1)
        test = f"{left} {self._random.choice(('<', '<=', '>', '!='))} {right}"
        kind = self._random.random()
        if kind < 0.15:
            return f"not {test}"
        if kind < 0.4:
            return f"{test} {self._random.choice(('and', 'or'))} x > {self._real(0)}"
        return test if kind < 0.9 else f"-1 < {self._real(0)} < 3.5"
