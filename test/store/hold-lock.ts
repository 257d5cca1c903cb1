// Program: holds SQLite's write lock for the given number of milliseconds.
import { DatabaseSync } from "node:sqlite";

const [file = "", ms = "0"] = process.argv.slice(2);
// Waits for a current writer.
const database = new DatabaseSync(file, { timeout: 5_000 });
database.exec("begin immediate");
process.stdout.write("locked\n");
setTimeout(() => {
  database.exec("commit");
  database.close();
}, Number(ms));
