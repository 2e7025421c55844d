"""`python -m frhsic`: the command line if no script is installed."""

from frhsic.cli import main

if __name__ == "__main__":
    main()
