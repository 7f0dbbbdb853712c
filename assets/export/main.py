if __name__ == "__main__":
    main(Path(__file__).parent, sys.argv[1:])
