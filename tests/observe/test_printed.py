"""What is printed passes on in whole lines, without secrets."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stdout

from headrace.observe.secret_masking import printed_as


def test_a_line_is_masked_as_a_whole():
    """However many writes it took; the stream is as it was afterwards, and has what did not end."""
    with redirect_stdout(io.StringIO()) as stream:
        with printed_as(lambda text: text.replace("open sesame", "${a:b}")):
            sys.stdout.write("say open")
            assert not stream.getvalue()
            sys.stdout.write(" sesame\nand open")
            assert "say ${a:b}\n" == stream.getvalue()
            sys.stdout.write(" sesame")
        sys.stdout.write("!\n")

        assert stream is sys.stdout
    assert "say ${a:b}\nand ${a:b}!\n" == stream.getvalue()


def test_a_line_that_never_ends_is_not_held_back():
    """It would fill the memory."""
    with redirect_stdout(io.StringIO()) as stream, printed_as(str):
        sys.stdout.write("." * (1 << 20))
        sys.stdout.write(".")

        assert (1 << 20) + 1 == len(stream.getvalue())


def test_a_stream_that_was_closed_meanwhile_is_left_alone():
    """Whoever closed it does not want the rest."""
    with redirect_stdout(io.StringIO()) as stream, printed_as(str):
        sys.stdout.write("rest")
        stream.close()

    assert stream.closed
