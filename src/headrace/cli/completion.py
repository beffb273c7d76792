"""`headrace completion`: what a shell needs to complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

_SHELLS: dict[str, type[ShellComplete]] = {
    "bash": BashComplete,
    "fish": FishComplete,
    "zsh": ZshComplete,
}


@click.command()
@click.argument("shell", type=click.Choice(sorted(_SHELLS)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print what SHELL reads to complete headrace's commands.

    \b
    bash: eval "$(headrace completion bash)", in ~/.bashrc
    zsh:  eval "$(headrace completion zsh)", in ~/.zshrc
    fish: headrace completion fish > ~/.config/fish/completions/headrace.fish
    """  # noqa: D301 (what keeps click from joining the lines is the character itself)
    made = _SHELLS[shell](ctx.find_root().command, {}, "headrace", "_HEADRACE_COMPLETE")
    click.echo(made.source())
