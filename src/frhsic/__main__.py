"""Run the command line as ``python -m frhsic``, also if the ``frhsic`` script is not installed."""

from frhsic.cli import main

if __name__ == "__main__":
    main()
