import contextlib
import io
import shutil
import subprocess

import pytest

from trialogue.cli import main

BASH = shutil.which("bash")


@pytest.mark.skipif(BASH is None, reason="there is no bash to complete in")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("gener",), ["generate"]),
        (("generate", "--max-new"), ["--max-new-tokens"]),
        (("generate", "--verifier-reads", "t"), ["text", "tokens"]),
        (("distribution", "--distr"), ["--distribution"]),
        (("models", "pu"), ["pull"]),
    ],
    ids=" ".join,
)
def test_bash_completes_words(words, offered, script):
    line = ["trialogue", *words]
    completion = (
        f"COMP_WORDS=({' '.join(line)}); COMP_CWORD={len(line) - 1}; "
        f"_shtab_trialogue trialogue {line[-1]} {line[-2]} 2> /dev/null; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    assert BASH is not None
    result = subprocess.run(
        [BASH, "-c", script + "\n" + completion], check=True, capture_output=True, text=True
    )
    assert sorted(result.stdout.split()) == sorted(offered)


@pytest.fixture(scope="module")
def script():
    page = io.StringIO()
    with contextlib.redirect_stdout(page):
        assert main(["completion", "bash"]) == 0
    return page.getvalue()


@pytest.mark.parametrize("shell", ["zsh", "tcsh"])
def test_other_shells_have_a_script(shell, capsys):
    assert main(["completion", shell]) == 0
    assert "generate" in capsys.readouterr().out
