/** The exit status of a program that the shell's `head` or `less` ends: 128 and the number of SIGPIPE. */
const ENDED_BY_READER = 141;

/** Ends this process without a message when the reader of its output leaves, as in `npm run simulate | head`. */
export function endWithReader() {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error) => {
      if (error.code !== "EPIPE") throw error;
      process.exit(ENDED_BY_READER);
    });
  }
}
