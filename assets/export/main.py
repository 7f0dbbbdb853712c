if __name__ == "__main__":
    try:
        main(Path(__file__).parent, sys.argv[1:])
    except (OSError, ValueError) as error:
        sys.exit(str(error))
