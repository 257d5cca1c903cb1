package dev.parley.test;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ReadmeTest {
  @TempDir Path folder;

  @Test
  void firstProgramPrintsAnAnswer() throws Exception {
    var block = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL).matcher(Files.readString(Path.of("README.md")));
    block.find();
    Path program = Files.writeString(folder.resolve("App.java"), block.group(1));
    Path output = folder.resolve("output");
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    String classPath = System.getProperty("surefire.test.class.path");

    Process process =
        new ProcessBuilder(java, "-cp", classPath, program.toString())
            .redirectErrorStream(true)
            .redirectOutput(output.toFile())
            .start();

    assertEquals(0, process.waitFor(), () -> read(output));
    assertFalse(read(output).isBlank());
  }

  private static String read(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
