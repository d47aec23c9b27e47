package finding

import (
	"strings"
	"testing"

	"tideline/shared/pipeline"
)

func TestNamesAreThoseOfThePipeline(t *testing.T) {
	if stageMap != pipeline.StageMap || stageInterleave != pipeline.StageInterleave || hostCores != pipeline.DefaultCores || !strings.HasPrefix(pipeline.StageSource, "from_") {
		t.Error("a stage has another name than package pipeline's")
	}
}
