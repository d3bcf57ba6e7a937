"""Shell completion: written by a command, and it knows the commands."""

from __future__ import annotations

import subprocess

from evsched.cli.main import COMMANDS, run

ASKED = "source {}; COMP_WORDS=(evsched ''); COMP_CWORD=1; _evsched; printf '%s\\n' \"${{COMPREPLY[@]}}\""


def test_bash_completes_every_command_once_the_script_is_installed(tmp_path, capsys):
    """The command writes the file and nothing else where it is told which; bash itself is asked what it offers then."""
    script = tmp_path / "evsched.bash"
    assert run(["completion", "install", "--shell", "bash", "--output", str(script)]) == 0
    assert str(script) in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == ["evsched.bash"]
    asked = ["bash", "--norc", "-c", ASKED.format(script)]
    offered = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    assert set(COMMANDS) <= set(offered)


def test_a_shell_that_cannot_be_seen_has_to_be_named(monkeypatch, capsys):
    """Nothing is guessed, and nothing written."""
    for name in ("ZSH_VERSION", "BASH_VERSION", "FISH_VERSION", "SHELL", "PATH"):
        monkeypatch.delenv(name, raising=False)
    assert run(["completion", "install"]) == 2
    assert "expected --shell bash, zsh, fish or powershell" in capsys.readouterr().err
