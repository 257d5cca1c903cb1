package parley

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	parleyv1 "parley.dev/go/parley/v1"
)

// Accumulator joins the chunks of one stream to the completion that Create would have returned. The zero value is ready.
type Accumulator struct {
	completion parleyv1.Completion
	// parts are those that have begun, by choice and part index.
	parts map[[2]int32]*growingPart
}

// growingPart is a part and its text so far, which is copied into the part only when it is asked for.
type growingPart struct {
	*parleyv1.Part
	text strings.Builder
	// field is the part's field that the text belongs into; nil for a part without text, and for a tool call without input.
	field *string
}

// Add joins the next chunk. It fails for a chunk about a part that has not begun, which the gateway never sends. Events and
// content that this version does not know are skipped.
func (a *Accumulator) Add(chunk *parleyv1.CompletionChunk) error {
	switch event := chunk.GetEvent().(type) {
	case *parleyv1.CompletionChunk_Start:
		a.completion.Id = event.Start.GetId()
		a.completion.CreateTime = event.Start.GetCreateTime()
		a.completion.Model = event.Start.GetModel()
	case *parleyv1.CompletionChunk_PartStart:
		a.startPart(event.PartStart)
	case *parleyv1.CompletionChunk_PartDelta:
		return a.addDelta(event.PartDelta)
	case *parleyv1.CompletionChunk_PartFinish:
		part, err := a.part(event.PartFinish)
		if err != nil {
			return err
		}
		if event.PartFinish.GetSignature() != "" {
			part.Signature = event.PartFinish.GetSignature()
		}
		for name, json := range event.PartFinish.GetProviderDetailsJson() {
			if part.ProviderDetailsJson == nil {
				part.ProviderDetailsJson = map[string]string{}
			}
			part.ProviderDetailsJson[name] = json
		}
	case *parleyv1.CompletionChunk_ChoiceFinish:
		choice := a.choice(event.ChoiceFinish.GetChoiceIndex())
		choice.FinishReason = event.ChoiceFinish.GetFinishReason()
		choice.NativeFinishReason = event.ChoiceFinish.GetNativeFinishReason()
		choice.StopSequence = event.ChoiceFinish.GetStopSequence()
		choice.ProviderDetailsJson = event.ChoiceFinish.GetProviderDetailsJson()
	case *parleyv1.CompletionChunk_Usage:
		a.completion.Usage = event.Usage
	case *parleyv1.CompletionChunk_Report:
		a.completion.Report = event.Report
	}
	return nil
}

// Completion returns what was added so far: after the last chunk the whole completion, before it without a report. It belongs
// to the accumulator, whose next Add changes it.
func (a *Accumulator) Completion() *parleyv1.Completion {
	for _, part := range a.parts {
		if part.field != nil {
			*part.field = part.text.String()
		}
	}
	return &a.completion
}

func (a *Accumulator) startPart(start *parleyv1.PartStart) {
	part := &growingPart{Part: proto.CloneOf(start.GetPart())}
	if part.field = textField(part.Part); part.field != nil {
		part.text.WriteString(*part.field)
	}
	if a.parts == nil {
		a.parts = make(map[[2]int32]*growingPart)
	}
	a.parts[[2]int32{start.GetChoiceIndex(), start.GetPartIndex()}] = part
	message := a.choice(start.GetChoiceIndex()).Message
	message.Parts = append(message.Parts, part.Part)
}

func (a *Accumulator) addDelta(delta *parleyv1.PartDelta) error {
	part, err := a.part(delta)
	if err != nil {
		return err
	}
	switch content := delta.GetContent().(type) {
	case *parleyv1.PartDelta_Text:
		part.text.WriteString(content.Text)
	case *parleyv1.PartDelta_Reasoning:
		part.text.WriteString(content.Reasoning)
	case *parleyv1.PartDelta_Refusal:
		part.text.WriteString(content.Refusal)
	case *parleyv1.PartDelta_ArgumentsJson:
		part.addArguments(content.ArgumentsJson)
	case *parleyv1.PartDelta_CustomInput:
		part.addCustomInput(content.CustomInput)
	case *parleyv1.PartDelta_NativeJson:
		part.text.WriteString(content.NativeJson)
	case *parleyv1.PartDelta_Audio:
		part.addAudio(content.Audio)
	case *parleyv1.PartDelta_Citation:
		part.Citations = append(part.Citations, content.Citation)
	case *parleyv1.PartDelta_ImageData:
		part.addImageData(content.ImageData)
	}
	part.Logprobs = append(part.Logprobs, delta.GetLogprobs()...)
	return nil
}

func (p *growingPart) addArguments(more string) {
	if call := p.GetToolCall(); call != nil && p.field == nil {
		input := new(parleyv1.ToolCall_ArgumentsJson)
		call.Input, p.field = input, &input.ArgumentsJson
	}
	p.text.WriteString(more)
}

func (p *growingPart) addCustomInput(more string) {
	if call := p.GetToolCall(); call != nil && p.field == nil {
		input := new(parleyv1.ToolCall_CustomInput)
		call.Input, p.field = input, &input.CustomInput
	}
	p.text.WriteString(more)
}

func (p *growingPart) addAudio(more *parleyv1.Audio) {
	audio := p.GetAudio()
	if audio == nil {
		return
	}
	p.text.WriteString(more.GetTranscript())
	if data := more.GetData(); len(data) > 0 {
		audio.Source = &parleyv1.Audio_Data{Data: append(audio.GetData(), data...)}
	}
	audio.MediaType = cmp.Or(more.GetMediaType(), audio.MediaType)
	audio.Id = cmp.Or(more.GetId(), audio.Id)
	audio.ExpireTime = cmp.Or(more.GetExpireTime(), audio.ExpireTime)
}

func (p *growingPart) addImageData(more []byte) {
	image := p.GetImage()
	if image == nil {
		return
	}
	data, ok := image.GetSource().(*parleyv1.Image_Data)
	if !ok {
		data = new(parleyv1.Image_Data)
		image.Source = data
	}
	data.Data = append(data.Data, more...)
}

// textField returns the field that the text of a part's deltas belongs into, if the part has it from its start.
func textField(part *parleyv1.Part) *string {
	switch kind := part.GetKind().(type) {
	case *parleyv1.Part_Text:
		return &kind.Text
	case *parleyv1.Part_Reasoning:
		return &kind.Reasoning.Text
	case *parleyv1.Part_Refusal:
		return &kind.Refusal
	case *parleyv1.Part_ToolCall:
		switch input := kind.ToolCall.GetInput().(type) {
		case *parleyv1.ToolCall_ArgumentsJson:
			return &input.ArgumentsJson
		case *parleyv1.ToolCall_CustomInput:
			return &input.CustomInput
		}
	case *parleyv1.Part_Native:
		return &kind.Native.Json
	case *parleyv1.Part_Audio:
		return &kind.Audio.Transcript
	}
	return nil
}

// part returns the part that a chunk is about.
func (a *Accumulator) part(of interface {
	GetChoiceIndex() int32
	GetPartIndex() int32
}) (*growingPart, error) {
	part, ok := a.parts[[2]int32{of.GetChoiceIndex(), of.GetPartIndex()}]
	if !ok {
		return nil, fmt.Errorf("parley: part %d of choice %d has not begun", of.GetPartIndex(), of.GetChoiceIndex())
	}
	return part, nil
}

// choice returns the choice of this index, and adds it in its place when it is new.
func (a *Accumulator) choice(index int32) *parleyv1.Choice {
	choices := a.completion.Choices
	at, found := slices.BinarySearchFunc(choices, index, func(choice *parleyv1.Choice, index int32) int {
		return cmp.Compare(choice.GetIndex(), index)
	})
	if !found {
		message := &parleyv1.Message{Role: parleyv1.Role_ROLE_ASSISTANT}
		a.completion.Choices = slices.Insert(choices, at, &parleyv1.Choice{Index: index, Message: message})
	}
	return a.completion.Choices[at]
}
