package dev.parley.client;

import com.google.protobuf.ByteString;
import dev.parley.v1.Audio;
import dev.parley.v1.Choice;
import dev.parley.v1.ChoiceFinish;
import dev.parley.v1.Completion;
import dev.parley.v1.CompletionChunk;
import dev.parley.v1.Part;
import dev.parley.v1.PartDelta;
import dev.parley.v1.Role;
import dev.parley.v1.ToolCall;
import dev.parley.v1.ToolCall.InputCase;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * Puts the chunks of a stream together. {@link CompletionStream} has its own; this is for chunks from elsewhere, such as
 * an asynchronous stub, and for what came before a stream failed. Content of a later contract is skipped. Not
 * thread-safe.
 */
public final class CompletionAccumulator {
  private final Completion.Builder completion = Completion.newBuilder();
  private final SortedMap<Integer, ChoicePieces> choices = new TreeMap<>();

  /** Creates an accumulator of no chunks. */
  public CompletionAccumulator() {}

  /**
   * Adds the next chunk.
   *
   * @param chunk the chunk
   */
  public void add(CompletionChunk chunk) {
    switch (chunk.getEventCase()) {
      case START -> {
        var start = chunk.getStart();
        completion.setId(start.getId()).setCreateTime(start.getCreateTime()).setModel(start.getModel());
      }
      case PART_START -> {
        var start = chunk.getPartStart();
        choice(start.getChoiceIndex()).part(start.getPartIndex()).part.mergeFrom(start.getPart());
      }
      case PART_DELTA -> {
        var delta = chunk.getPartDelta();
        choice(delta.getChoiceIndex()).part(delta.getPartIndex()).add(delta);
      }
      case PART_FINISH -> {
        var finish = chunk.getPartFinish();
        if (finish.getSignature().isEmpty() && finish.getProviderDetailsJsonCount() == 0) return;
        var part = choice(finish.getChoiceIndex()).part(finish.getPartIndex()).part;
        if (!finish.getSignature().isEmpty()) part.setSignature(finish.getSignature());
        part.putAllProviderDetailsJson(finish.getProviderDetailsJsonMap());
      }
      case CHOICE_FINISH -> choice(chunk.getChoiceFinish().getChoiceIndex()).finish(chunk.getChoiceFinish());
      case USAGE -> completion.setUsage(chunk.getUsage());
      case REPORT -> completion.setReport(chunk.getReport());
      case EVENT_NOT_SET -> {}
    }
  }

  /**
   * Returns the chunks so far as one message. It is whole when it has a report.
   *
   * @return the completion
   */
  public Completion completion() {
    Completion.Builder whole = completion.clone();
    choices.values().forEach(pieces -> whole.addChoices(pieces.build()));
    return whole.build();
  }

  boolean hasReport() {
    return completion.hasReport();
  }

  private ChoicePieces choice(int index) {
    return choices.computeIfAbsent(index, ChoicePieces::new);
  }

  private static final class ChoicePieces {
    private final Choice.Builder choice = Choice.newBuilder();
    private final SortedMap<Integer, PartPieces> parts = new TreeMap<>();

    ChoicePieces(int index) {
      choice.setIndex(index).getMessageBuilder().setRole(Role.ROLE_ASSISTANT);
    }

    PartPieces part(int index) {
      return parts.computeIfAbsent(index, i -> new PartPieces());
    }

    void finish(ChoiceFinish finish) {
      choice
          .setFinishReasonValue(finish.getFinishReasonValue())
          .setNativeFinishReason(finish.getNativeFinishReason())
          .setStopSequence(finish.getStopSequence())
          .putAllProviderDetailsJson(finish.getProviderDetailsJsonMap());
    }

    Choice build() {
      Choice.Builder whole = choice.clone();
      parts.values().forEach(pieces -> whole.getMessageBuilder().addParts(pieces.build()));
      return whole.build();
    }
  }

  /** A part as it began, and its deltas. Texts and bytes are joined when the part is built. */
  private static final class PartPieces {
    private final Part.Builder part = Part.newBuilder();
    private final StringBuilder text = new StringBuilder();
    private ByteString bytes = ByteString.EMPTY;

    void add(PartDelta delta) {
      switch (delta.getContentCase()) {
        case TEXT -> text.append(delta.getText());
        case REASONING -> text.append(delta.getReasoning());
        case REFUSAL -> text.append(delta.getRefusal());
        case ARGUMENTS_JSON -> {
          text.append(delta.getArgumentsJson());
          if (hasNoInput()) part.getToolCallBuilder().setArgumentsJson("");
        }
        case CUSTOM_INPUT -> {
          text.append(delta.getCustomInput());
          if (hasNoInput()) part.getToolCallBuilder().setCustomInput("");
        }
        case NATIVE_JSON -> text.append(delta.getNativeJson());
        case AUDIO -> {
          Audio audio = delta.getAudio();
          text.append(audio.getTranscript());
          bytes = bytes.concat(audio.getData());
          part.getAudioBuilder().mergeFrom(audio.toBuilder().clearTranscript().clearData().build());
        }
        case IMAGE_DATA -> bytes = bytes.concat(delta.getImageData());
        case CITATION -> part.addCitations(delta.getCitation());
        case CONTENT_NOT_SET -> {}
      }
      part.addAllLogprobs(delta.getLogprobsList());
    }

    /** Whether this is a tool call of which it is not known yet what kind of input it has. */
    private boolean hasNoInput() {
      return part.hasToolCall() && part.getToolCall().getInputCase() == InputCase.INPUT_NOT_SET;
    }

    Part build() {
      Part.Builder whole = part.clone();
      switch (whole.getKindCase()) {
        case TEXT -> whole.setText(whole.getText() + text);
        case REFUSAL -> whole.setRefusal(whole.getRefusal() + text);
        case REASONING -> whole.getReasoningBuilder().setText(whole.getReasoning().getText() + text);
        case TOOL_CALL -> {
          ToolCall.Builder call = whole.getToolCallBuilder();
          if (call.hasArgumentsJson()) call.setArgumentsJson(call.getArgumentsJson() + text);
          else if (call.hasCustomInput()) call.setCustomInput(call.getCustomInput() + text);
        }
        case NATIVE -> whole.getNativeBuilder().setJson(whole.getNative().getJson() + text);
        case AUDIO -> {
          Audio.Builder audio = whole.getAudioBuilder();
          audio.setTranscript(audio.getTranscript() + text);
          if (!bytes.isEmpty()) audio.setData(audio.getData().concat(bytes));
        }
        case IMAGE -> {
          if (!bytes.isEmpty()) whole.getImageBuilder().setData(whole.getImage().getData().concat(bytes));
        }
        default -> {}
      }
      return whole.build();
    }
  }
}
