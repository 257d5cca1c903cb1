// Run as a process of its own: holds SQLite's write lock for as many milliseconds as it is told.
import { DatabaseSync } from "node:sqlite";

const [file = "", ms = "0"] = process.argv.slice(2);
// Whoever writes at this moment is waited for.
const database = new DatabaseSync(file, { timeout: 5_000 });
database.exec("begin immediate");
process.stdout.write("locked\n");
setTimeout(() => {
  database.exec("commit");
  database.close();
}, Number(ms));
