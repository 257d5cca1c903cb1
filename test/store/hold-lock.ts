// Run as a process of its own: holds SQLite's write lock for as many milliseconds as it is told.
import { DatabaseSync } from "node:sqlite";

const [file = "", ms = "0"] = process.argv.slice(2);
const database = new DatabaseSync(file);
database.exec("begin immediate");
process.stdout.write("locked\n");
setTimeout(() => {
  database.exec("commit");
  database.close();
}, Number(ms));
