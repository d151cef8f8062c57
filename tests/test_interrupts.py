"""Ctrl-C in the gaps of compiled code."""

import pytest

from stream_hc.interrupts import plain_interrupts


def interrupt():
    raise KeyboardInterrupt


def numba_was_interrupted():
    raise SystemError("a kernel returned a result with an exception set") from KeyboardInterrupt()


def test_what_numba_makes_of_ctrl_c_is_an_interrupt_again():
    with pytest.raises(KeyboardInterrupt), plain_interrupts():
        numba_was_interrupted()


def test_other_errors_stay_what_they_are():
    with pytest.raises(SystemError, match=r"^odd$"), plain_interrupts():
        raise SystemError("odd")
    with pytest.raises(ValueError, match=r"^x$"), plain_interrupts():
        raise ValueError("x")
