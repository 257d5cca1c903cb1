@rem cmd.exe has no exec. `npm start` uses it so that, elsewhere, SIGTERM to npm reaches Parley and not a shell.
@%*
