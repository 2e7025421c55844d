"""Run the command line as ``python -m frhsic``, even if the ``frhsic`` script is not installed."""

from frhsic.cli import main

if __name__ == "__main__":
    main()
