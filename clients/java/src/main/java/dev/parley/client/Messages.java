package dev.parley.client;

import static java.util.stream.Collectors.joining;

import dev.parley.v1.Completion;
import dev.parley.v1.EmbeddingInput;
import dev.parley.v1.Message;
import dev.parley.v1.Part;
import dev.parley.v1.Role;
import dev.parley.v1.ToolCall;
import dev.parley.v1.ToolResult;
import java.util.Arrays;
import java.util.List;

/** Shortens what is long to build or to read: the most frequent messages. */
public final class Messages {
  private Messages() {}

  /**
   * Builds a message of the person, or of the program in their place.
   *
   * @param text what is said
   * @return the message
   */
  public static Message userText(String text) {
    return message(Role.ROLE_USER, text(text));
  }

  /**
   * Builds a message with instructions from the application.
   *
   * @param text the instructions
   * @return the message
   */
  public static Message systemText(String text) {
    return message(Role.ROLE_SYSTEM, text(text));
  }

  /**
   * Builds the message that answers a tool call.
   *
   * @param call the call
   * @param text its result
   * @return the message
   */
  public static Message toolResult(ToolCall call, String text) {
    ToolResult result = ToolResult.newBuilder().setToolCallId(call.getId()).addParts(text(text)).build();
    return message(Role.ROLE_TOOL, Part.newBuilder().setToolResult(result).build());
  }

  /**
   * Builds the inputs of an embedding request.
   *
   * @param texts the texts
   * @return an input for each text
   */
  public static List<EmbeddingInput> textInputs(String... texts) {
    return Arrays.stream(texts).map(text -> EmbeddingInput.newBuilder().setText(text).build()).toList();
  }

  /**
   * Returns the text of a completion's first choice.
   *
   * @param completion the completion
   * @return its text parts, joined; empty when it has none
   */
  public static String textOf(Completion completion) {
    if (completion.getChoicesCount() == 0) return "";
    return completion.getChoices(0).getMessage().getPartsList().stream().map(Part::getText).collect(joining());
  }

  private static Part text(String text) {
    return Part.newBuilder().setText(text).build();
  }

  private static Message message(Role role, Part part) {
    return Message.newBuilder().setRole(role).addParts(part).build();
  }
}
