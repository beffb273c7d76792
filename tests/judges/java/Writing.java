import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.Date;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.Struct;

/** Schemas and values in the form in which the tests read them. */
public class Writing {
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

    public static JsonNode schema(Schema schema) {
        if (schema == null) {
            return NODES.nullNode();
        }
        ObjectNode told = NODES.objectNode();
        told.put("type", schema.type().name());
        told.put("optional", schema.isOptional());
        if (schema.name() != null) {
            told.put("name", schema.name());
        }
        if (schema.version() != null) {
            told.put("version", schema.version());
        }
        if (schema.doc() != null) {
            told.put("doc", schema.doc());
        }
        if (schema.defaultValue() != null) {
            told.set("default", value(schema.defaultValue()));
        }
        told.set("parameters", parameters(schema.parameters()));
        if (schema.type() == Schema.Type.MAP) {
            told.set("keys", schema(schema.keySchema()));
        }
        if (schema.type() == Schema.Type.MAP || schema.type() == Schema.Type.ARRAY) {
            told.set("values", schema(schema.valueSchema()));
        }
        if (schema.type() == Schema.Type.STRUCT) {
            told.set("fields", fields(schema));
        }
        return told;
    }

    private static ObjectNode parameters(Map parameters) {
        ObjectNode told = NODES.objectNode();
        if (parameters != null) {
            for (Iterator each = parameters.entrySet().iterator(); each.hasNext();) {
                Map.Entry entry = (Map.Entry) each.next();
                told.put((String) entry.getKey(), (String) entry.getValue());
            }
        }
        return told;
    }

    private static ArrayNode fields(Schema schema) {
        ArrayNode told = NODES.arrayNode();
        for (Iterator each = schema.fields().iterator(); each.hasNext();) {
            Field field = (Field) each.next();
            told.add(NODES.arrayNode().add(field.name()).add(schema(field.schema())));
        }
        return told;
    }

    /** The simple name of the value's class and its text or its members: nobody need ask a schema. */
    public static JsonNode value(Object value) {
        if (value == null) {
            return NODES.nullNode();
        }
        ArrayNode told = NODES.arrayNode();
        if (value instanceof Struct) {
            return told.add("Struct").add(struct((Struct) value));
        }
        if (value instanceof Map) {
            return told.add("Map").add(map((Map) value));
        }
        if (value instanceof List) {
            ArrayNode items = NODES.arrayNode();
            for (Iterator each = ((List) value).iterator(); each.hasNext();) {
                items.add(value(each.next()));
            }
            return told.add("List").add(items);
        }
        if (value instanceof byte[]) {
            return told.add("Bytes").add(Base64.getEncoder().encodeToString((byte[]) value));
        }
        if (value instanceof ByteBuffer) {
            return told.add("Bytes").add(Base64.getEncoder().encodeToString(((ByteBuffer) value).array()));
        }
        String text = value instanceof Date ? String.valueOf(((Date) value).getTime()) : value.toString();
        return told.add(value.getClass().getSimpleName()).add(text);
    }

    private static ArrayNode struct(Struct struct) {
        ArrayNode told = NODES.arrayNode();
        for (Iterator each = struct.schema().fields().iterator(); each.hasNext();) {
            Field field = (Field) each.next();
            told.add(NODES.arrayNode().add(field.name()).add(value(struct.getWithoutDefault(field.name()))));
        }
        return told;
    }

    private static ArrayNode map(Map map) {
        ArrayNode told = NODES.arrayNode();
        for (Iterator each = map.entrySet().iterator(); each.hasNext();) {
            Map.Entry entry = (Map.Entry) each.next();
            told.add(NODES.arrayNode().add(value(entry.getKey())).add(value(entry.getValue())));
        }
        return told;
    }
}
